"""The TypeScript client: its types, made from the contract, and its package for npm.

The same sources make the same bytes. It needs Node.js and what `tools/consumers` has installed.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

_ROOT = Path(__file__).parents[1]
CLIENT = _ROOT / "clients" / "typescript"
GENERATED = CLIENT / "src" / "contract.ts"
_TSC = _ROOT / "tests" / "consumers" / "node_modules" / "typescript" / "bin" / "tsc"
_TIME = 499_162_500  # 26 October 1985, as npm has it


def contract_types() -> str:
    """The types of the current contract, as `generate` writes them."""
    from petstore.config import load
    from petstore.wiring.operations import openapi_document

    document = openapi_document(load({})).as_json()
    command: list[str | Path] = ["node", CLIENT / "generate.mjs"]
    return subprocess.run(command, input=document, check=True, stdout=subprocess.PIPE).stdout.decode()


def build(folder: Path, client: Path = CLIENT) -> Path:
    """Write petstore-client-VERSION.tgz, of sources that may stand elsewhere, into a folder; its path."""
    with tempfile.TemporaryDirectory() as compiled:
        subprocess.run(["node", _TSC, "-p", client, "--outDir", compiled], check=True)
        return pack(Path(compiled), folder, client)


def pack(compiled: Path, folder: Path, client: Path = CLIENT) -> Path:
    """Write the package of what was compiled."""
    version = json.loads((client / "package.json").read_text(encoding="utf-8"))["version"]
    files = {f"dist/{path.name}": path for path in compiled.iterdir()}
    files |= {path.name: path for path in (client / "package.json", client / "README.md", _ROOT / "LICENSE")}
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / f"petstore-client-{version}.tgz"
    with (
        made.open("wb") as raw,
        gzip.GzipFile("", "wb", mtime=0, fileobj=raw) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for name, path in sorted(files.items()):
            _add(archive, name, path.read_bytes())
    return made


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    """Add a file as `npm pack` does, but at a time that is always the same."""
    file = tarfile.TarInfo(f"package/{name}")
    file.size, file.mtime, file.mode = len(content), _TIME, 0o644
    archive.addfile(file, io.BytesIO(content))


def main() -> None:
    """Carry out a command."""
    parser = argparse.ArgumentParser(prog="python -m tools.typescript", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("generate", help="write the types anew from the contract")
    commands.add_parser("build", help="write the package").add_argument("folder", type=Path)
    given = parser.parse_args()
    if given.command == "generate":
        GENERATED.write_text(contract_types(), encoding="utf-8")
    else:
        sys.stdout.write(f"{build(given.folder)}\n")


if __name__ == "__main__":
    main()
