"""Environments of the peers: made from their locks on first use, kept in CACHE/peers/<name>."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

from verification.benchmarks.data import CACHE

SOURCES = Path(__file__).parent
_NODE_MIN = 20
_SECONDS_MAX = 900.0


class Unavailable(Exception):
    """A peer can't be had on this machine; the message says why, on one line."""


def _run(command: list[str], folder: Path, environment: dict[str, str] | None = None) -> str:
    """Output of a command. Raises Unavailable with the last thing that it said."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=os.environ | (environment or {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS_MAX,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{command[0]}: {error}") from error
    if done.returncode != 0:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if "error" in line.lower()]
        reason = "; ".join(line.strip() for line in lines[:2]) or f"status {done.returncode}"
        raise Unavailable(f"`{' '.join(command[:3])} …` failed: {reason}")
    return done.stdout.strip()


def _is_current(folder: Path, fingerprint: str) -> bool:
    stamp = folder / "made-from"
    return stamp.exists() and stamp.read_text(encoding="utf-8") == fingerprint


def _fingerprint(lock: Path, runtime: str) -> str:
    return f"{hashlib.sha256(lock.read_bytes()).hexdigest()} {runtime}"


def python(name: str) -> Path:
    """The directory of programs of a peer's virtual environment."""
    lock, folder = SOURCES / name / "requirements.lock", CACHE / "peers" / name
    fingerprint = _fingerprint(lock, f"{platform.python_version()} {folder}")
    if not _is_current(folder, fingerprint):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        print(f"installing {name} …", flush=True)
        _run([sys.executable, "-m", "venv", "--without-pip", str(folder)], folder)
        pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "--quiet"]
        _run([*pip, "install", "--require-hashes", "--requirement", str(lock)], folder)
        (folder / "made-from").write_text(fingerprint, encoding="utf-8")
    return folder / "bin"


def _node_version() -> str:
    """Raises Unavailable when it is missing or too old."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        raise Unavailable(f"it needs Node.js {_NODE_MIN} or newer with npm")
    version = _run(["node", "--version"], SOURCES)
    if int(version.removeprefix("v").partition(".")[0]) < _NODE_MIN:
        raise Unavailable(f"it needs Node.js {_NODE_MIN} or newer, this is {version}")
    return version


def _node_headers(folder: Path) -> dict[str, str]:
    """The directory of Node.js with its headers, for compiling without a download of them."""
    prefix = Path(_run(["node", "--print", "process.execPath"], folder)).resolve().parent.parent
    return {"npm_config_nodedir": str(prefix)} if (prefix / "include/node/node.h").exists() else {}


def node(name: str) -> Path:
    """The directory with a peer's program and its packages.

    No package may run a script but the SQLite driver, which is compiled from the source that the lock pins.
    """
    source, folder = SOURCES / name, CACHE / "peers" / name
    fingerprint = _fingerprint(source / "package-lock.json", _node_version())
    if not _is_current(folder, fingerprint):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for file in ("package.json", "package-lock.json"):
            shutil.copyfile(source / file, folder / file)
        print(f"installing {name}: it compiles SQLite, which takes a minute or two …", flush=True)
        _run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], folder)
        environment = {"npm_config_build_from_source": "true", **_node_headers(folder)}
        try:
            _run(["npm", "rebuild", "better-sqlite3", "--loglevel=error"], folder, environment)
        except Unavailable as error:
            raise Unavailable(
                f"its SQLite driver takes make, a C++ compiler and Python 3: {error}"
            ) from error
        _run(["node", "--eval", "new (require('better-sqlite3'))(':memory:')"], folder)
        (folder / "made-from").write_text(fingerprint, encoding="utf-8")
    shutil.copyfile(source / "server.js", folder / "server.js")
    return folder
