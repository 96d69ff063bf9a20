"""tools/consumers on a machine that lacks something: it says so, and the check goes on."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.architecture.sources import ROOT

_SYSTEM = ("dirname", "cmp", "cksum", "rm")


def say(tree: Path, **programs: str) -> str:
    """What it says in a tree of its own, with these programs and few of the system; it has to end well."""
    (tree / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "consumers", tree / "tools")
    (tree / "tests" / "consumers").mkdir(parents=True)
    for name in ("package-lock.json", "requirements.lock"):
        (tree / "tests" / "consumers" / name).touch()
    here = tree / "bin"
    here.mkdir()
    for name in _SYSTEM:
        (here / name).symlink_to(str(shutil.which(name)))
    for name, script in programs.items():
        (here / name).write_text(f"#!/bin/sh\n{script}\n")
        (here / name).chmod(0o755)
    done = subprocess.run(
        [tree / "tools" / "consumers"],
        env={"PATH": str(here)},
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
    )
    return done.stderr


def test_without_node_it_names_the_packages(tmp_path: Path) -> None:
    """A machine without Node.js learns what to install; nothing ends in an error."""
    assert "There is no Node.js with npm here" in say(tmp_path)


def test_an_old_node_is_refused(tmp_path: Path) -> None:
    """Some of the tools don't run on Node.js 18: better none than some that fail strangely."""
    said = say(tmp_path, node='[ "$1" = --version ] && echo v18.0.0', npm="exit 1")
    assert "Node.js is v18.0.0 here" in said


def test_what_cannot_be_installed_is_not_left_half_done(tmp_path: Path) -> None:
    """npm fails: it says so, and leaves no folder that would be taken for a whole one."""
    said = say(tmp_path, node="echo v20.0.0", npm="/bin/mkdir node_modules; exit 1")
    assert "npm could not install tests/consumers/package-lock.json" in said
    assert not (tmp_path / "tests" / "consumers" / "node_modules").exists()
