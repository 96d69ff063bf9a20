"""Makes the Python client for threads from the one for asyncio: python -m tools.sync_client

In clients/python `_sync` is `_async` without its awaiting. unasync takes it out, and `Async` of the names.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import unasync

SOURCE = Path(__file__).parents[1] / "clients" / "python" / "src" / "petstore_client" / "_async"
TARGET = SOURCE.with_name("_sync")
_NAMES = {"_async": "_sync", "aiter_bytes": "iter_bytes", "wait_async": "wait", "watch_async": "watch"}


def made() -> dict[str, str]:
    """The text of each file for threads, by its name."""
    sources = sorted(SOURCE.glob("*.py"))
    classes = {name for each in sources for name in re.findall(r"\bAsync[A-Z]\w*", each.read_text("utf-8"))}
    names = _NAMES | {name: name.removeprefix("Async") for name in classes}
    with TemporaryDirectory() as folder:
        rule = unasync.Rule(f"{SOURCE}/", f"{folder}/", names)
        unasync.unasync_files([str(each) for each in sources], [rule])
        return {each.name: _finished(Path(folder, each.name)) for each in sources}


def _finished(file: Path) -> str:
    """The text with a line that says where it is from, its imports in order, formatted."""
    text = f"# Made from _async/{file.name} by `python -m tools.sync_client`.\n{file.read_text('utf-8')}"
    options = ["--quiet", "--stdin-filename", str(TARGET / file.name), "-"]
    for command in (["check", "--select=I", "--fix"], ["format"]):
        ruff = [sys.executable, "-m", "ruff", *command, *options]
        text = subprocess.run(ruff, check=True, input=text, capture_output=True, encoding="utf-8").stdout
    return text


if __name__ == "__main__":
    for name, text in made().items():
        (TARGET / name).write_text(text, "utf-8")
