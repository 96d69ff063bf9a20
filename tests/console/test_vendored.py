"""The files of other projects that the console serves are the published ones."""

from __future__ import annotations

import hashlib
from pathlib import Path

CONSOLE = Path("src/petstore/console")


def test_each_file_has_its_checksum_and_licence() -> None:
    """`tools/vendor` fetches the pinned versions again, and compares in the same way."""
    lines = (CONSOLE / "licences" / "SHA256SUMS").read_text().splitlines()
    listed = {name: checksum for checksum, name in map(str.split, lines)}
    vendored = sorted(path.name for path in (CONSOLE / "static").iterdir() if ".min." in path.name)
    assert vendored == sorted(listed)
    for name, checksum in listed.items():
        assert hashlib.sha256((CONSOLE / "static" / name).read_bytes()).hexdigest() == checksum
        assert (CONSOLE / "licences" / f"{name.partition('-')[0]}.txt").stat().st_size > 500
