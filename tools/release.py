"""Build the packages: python -m tools.release [clients]

Alone it builds a release of the commit that is checked out into dist/; it publishes nothing. `clients` builds
what the service serves to its callers. The build backend writes fixed times: the same sources, the same file.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tools import typescript

_ROOT = Path(__file__).parents[1]
SERVED = Path("src/petstore/site/clients")
_PYTHON_CLIENT = Path("clients/python")
_HOOK = "import sys, uv_build; getattr(uv_build, sys.argv[1])(sys.argv[2])"
# The clients, and what has the version of each.
_VERSIONS = {"clients/python": "pyproject.toml", "clients/typescript": "package.json"}
_VERSION = re.compile(r'^ *"?version"?(?: =|:) "([0-9]+)\.([0-9]+)\.([0-9]+)"', re.M)
# They name the version of the build backend.
_OF_THE_BACKEND = (".dist-info/WHEEL", ".dist-info/RECORD")


def build(hook: str, source: Path, target: Path) -> Path:
    """Build a folder's `build_wheel` or `build_sdist` into a new folder; the file."""
    target.mkdir(parents=True)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    command = [sys.executable, "-c", _HOOK, hook, str(target)]
    subprocess.run(command, cwd=source, env=os.environ | {"PATH": path}, check=True)
    (made,) = target.iterdir()
    return made


def build_clients(root: Path, target: Path) -> Iterator[Path]:
    """Build into a new folder what the service serves. The second needs what tools/consumers installs."""
    yield build("build_wheel", root / _PYTHON_CLIENT, target / "python")
    yield typescript.build(target / "typescript", root / "clients" / "typescript")


def differs(made: Path, kept: Path) -> bool:
    """Whether another package is kept than was made; what the build backend adds of itself does not count."""
    return not kept.exists() or _members(made) != _members(kept)


def _members(package: Path) -> dict[str, bytes]:
    if package.suffix == ".tgz":
        with tarfile.open(package) as archive:
            files = [(name, archive.extractfile(name)) for name in archive.getnames()]
            return {name: file.read() for name, file in files if file is not None}
    with zipfile.ZipFile(package) as wheel:
        return {name: wheel.read(name) for name in wheel.namelist() if not name.endswith(_OF_THE_BACKEND)}


def renew_clients() -> None:
    """Build the clients anew whose sources have changed."""
    with TemporaryDirectory() as folder:
        for made in build_clients(_ROOT, Path(folder)):
            kept = _ROOT / SERVED / made.name
            if differs(made, kept):
                shutil.copyfile(made, kept)
                sys.stdout.write(f"{kept.relative_to(_ROOT)} is new: commit it with its sources.\n")


def last_release() -> str:
    """The last commit of the newest release, empty without one. Tags may not travel: CHANGELOG.md has it."""
    changes = (_ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    found = re.search(r"^Its last commit is ([0-9a-f]{7,40})", changes, re.M)
    return found[1] if found else ""


def refusal() -> str:
    """Why nothing is released of what is checked out; empty where it can be."""
    if changed := _git("status", "--porcelain"):
        return f"a release is made of a commit. Commit these, or remove them:\n{changed}"
    version = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    tagged = _git("tag", "--list", f"v{version}", "--format=%(refname)^{commit}")
    if tagged and _git("rev-parse", tagged) != _git("rev-parse", "HEAD"):
        return f"v{version} is another commit. Change the version."
    changes = (_ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    if changes.partition("\n## [Unreleased]\n")[2].partition("\n## ")[0].strip():
        return "CHANGELOG.md has changes without a release. Name it in place of [Unreleased]."
    newest = re.search(r"^## \[([^]]+)\] - ", changes, re.M)
    if newest is None or newest[1] != version:
        return f"The newest release in CHANGELOG.md is not ## [{version}] - DATE."
    return _refusal_of_clients(last_release())


def _refusal_of_clients(last: str) -> str:
    """A changed client has a higher version than the released one, which users have installed."""
    if last and not _git("rev-parse", "--verify", "--quiet", f"{last}^{{commit}}", may_fail=True):
        return f"{last}, the last commit of the last release, is not in this repository. Fetch its history."
    for folder, file in _VERSIONS.items() if last else ():
        if not _git("ls-tree", last, folder) or not _git("diff", "--name-only", last, "HEAD", "--", folder):
            continue
        before, now = (_version(_git("show", f"{commit}:{folder}/{file}")) for commit in (last, "HEAD"))
        if now <= before:
            return f"{folder} has changed since {last}. Raise its version in {folder}/{file}."
    return ""


def _version(text: str) -> tuple[int, ...]:
    found = _VERSION.search(text)
    assert found is not None
    return tuple(map(int, found.groups()))


def release() -> list[Path]:
    """The files of a release, alone in dist/. Raises ValueError if a client is stale."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        tree = _unpack(_archive(folder / "tree.tar"), folder / "tree")
        files = {}
        for made in build_clients(tree, folder / "clients"):
            kept = files[made.name] = tree / SERVED / made.name
            if differs(made, kept):
                raise ValueError(f"{SERVED / made.name} is not what its sources are: make clients")
        for number, source in enumerate((tree, tree / _PYTHON_CLIENT)):
            for made in _distributions(source, folder / str(number)):
                files.setdefault(made.name, made)  # the client's wheel is the one that is served
        shutil.rmtree(_ROOT / "dist", ignore_errors=True)
        (_ROOT / "dist").mkdir()
        return [Path(shutil.copy(one, _ROOT / "dist")) for _, one in sorted(files.items())]


def _distributions(source: Path, folder: Path) -> Iterator[Path]:
    """A project as sdist, and the wheel that is built of it: so it has all that it needs."""
    sdist = build("build_sdist", source, folder / "sdist")
    yield sdist
    (unpacked,) = _unpack(sdist, folder / "unpacked").iterdir()
    yield build("build_wheel", unpacked, folder / "wheel")


def _archive(target: Path) -> Path:
    """The commit, as `git archive` writes it: with its hash, and without what is not committed."""
    _git("archive", "--output", str(target), "HEAD")
    return target


def _unpack(archive: Path, target: Path) -> Path:
    with tarfile.open(archive) as packed:
        packed.extractall(target, filter="data")
    return target


def _git(*words: str, may_fail: bool = False) -> str:
    done = subprocess.run(["git", *words], cwd=_ROOT, check=not may_fail, capture_output=True, text=True)
    return done.stdout.strip()


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.release", description=__doc__)
    parser.add_argument("what", nargs="?", choices=["release", "clients"], default="release")
    if parser.parse_args().what == "clients":
        renew_clients()
        return 0
    try:
        if why := refusal():
            raise ValueError(why)
        files = release()
    except ValueError as error:
        sys.stderr.write(f"Nothing is released: {error}\n")
        return 1
    for path in files:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        sys.stdout.write(f"{digest}  {path.relative_to(_ROOT)}  {path.stat().st_size:,} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
