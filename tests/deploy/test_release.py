"""`make release`, in a copy of this repository: what it builds, and what it refuses."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT, tracked
from tests.ops.test_build import git
from tests.support.machine import program
from tests.support.outside import node_module

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.xdist_group("release")]

VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
SECTION = f"# Changelog\n\n## [Unreleased]\n\n## [{VERSION}] - 2026-12-01\n"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A commit of what is tracked here, with a changelog that is ready."""
    folder = tmp_path_factory.mktemp("checkout")
    for path in tracked():
        target = folder / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target, follow_symlinks=False)
    (folder / "CHANGELOG.md").write_text(SECTION)
    git(folder, "init", "-q")
    program("node")
    (folder / "tests/consumers/node_modules").symlink_to(node_module("typescript").parent)
    (folder / ".git/info/exclude").write_text("node_modules\n")  # .gitignore means folders
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def release(checkout: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tools.release"]
    return subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)


def refused(checkout: Path) -> str:
    done = release(checkout)
    assert (done.returncode, done.stdout) == (1, "")
    return done.stderr.removeprefix("Nothing is released: ")


def refusal_of(checkout: Path) -> str:
    """Why a release is refused, if it is. Nothing is built."""
    command = [sys.executable, "-c", "from tools import release; print(release.refusal())"]
    return subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=True).stdout.strip()


def test_it_builds_a_commit_twice_alike(checkout: Path) -> None:
    """Both projects as wheel and sdist, the client for npm, with the hashes that it prints. The service knows
    its commit, and has the very clients that are released."""
    done = release(checkout)
    assert done.returncode == 0, done.stderr
    client = f"petstore_client-{VERSION}-py3-none-any.whl"
    service = f"petstore_service-{VERSION}-py3-none-any.whl"
    dist = checkout / "dist"
    files = [
        f"petstore-client-{VERSION}.tgz",
        client,
        f"petstore_client-{VERSION}.tar.gz",
        service,
        f"petstore_service-{VERSION}.tar.gz",
    ]
    assert sorted(path.name for path in dist.iterdir()) == files
    hashes = {name: hashlib.sha256((dist / name).read_bytes()).hexdigest() for name in files}
    assert [line.split()[:2] for line in done.stdout.splitlines()] == [
        [digest, f"dist/{name}"] for name, digest in hashes.items()
    ]
    with zipfile.ZipFile(dist / service) as wheel:
        for served in files[:2]:
            assert wheel.read(f"petstore/site/clients/{served}") == (dist / served).read_bytes()
        assert wheel.read("petstore/commit.txt").decode().strip() == git(checkout, "rev-parse", "HEAD")
        assert wheel.read("petstore/site/documents/CHANGELOG.md").decode() == SECTION
    with tarfile.open(dist / files[4]) as sdist:
        assert f"petstore_service-{VERSION}/src/petstore/site/clients/{client}" in sdist.getnames()
    assert release(checkout).stdout == done.stdout


def test_it_refuses_what_nobody_could_build_again(checkout: Path) -> None:
    """Files that are not committed, a version that is another commit, changes without a release, and a client
    that is not what its sources are."""
    first = git(checkout, "rev-parse", "HEAD")

    def commit(name: str, text: str) -> None:
        git(checkout, "reset", "-q", "--hard", first)
        (checkout / name).write_text(text)
        git(checkout, "commit", "-q", "-a", "-m", "next")

    (checkout / "new.txt").touch()
    assert "new.txt" in refused(checkout)
    (checkout / "new.txt").unlink()
    commit("README.md", "# Another\n")
    git(checkout, "tag", f"v{VERSION}", first)
    assert refused(checkout) == f"v{VERSION} is another commit. Change the version.\n"
    git(checkout, "tag", "-d", f"v{VERSION}")
    commit("CHANGELOG.md", SECTION.replace("[Unreleased]", "[Unreleased]\n\n* more"))
    assert refused(checkout).startswith("CHANGELOG.md has changes without a release")
    later = f"## [9.0.0] - 2026-12-02\n\n## [{VERSION}]"
    for changes in (SECTION.replace(VERSION, "0.0.1"), SECTION.replace(f"## [{VERSION}]", later)):
        commit("CHANGELOG.md", changes)
        assert refused(checkout) == f"The newest release in CHANGELOG.md is not ## [{VERSION}] - DATE.\n"
    commit("clients/python/README.md", "# Another\n")
    assert refused(checkout).endswith("is not what its sources are: make clients\n")


@pytest.mark.parametrize("folder", ["clients/python", "clients/typescript"])
def test_it_refuses_a_changed_client_of_a_released_version(checkout: Path, folder: str) -> None:
    """Nobody who pins the released one would get the change. A version may not fall either."""
    first = git(checkout, "rev-parse", "HEAD")
    released = f"{SECTION}\n## [0.9.0] - 2026-11-01\n\nIts last commit is {first}.\n"
    file = checkout / folder / ("package.json" if folder.endswith("typescript") else "pyproject.toml")
    text, named = file.read_text(), file.relative_to(checkout)

    def commit(version: str, changes: str = released) -> None:
        (checkout / "CHANGELOG.md").write_text(changes)
        file.write_text(text.replace(f'"{VERSION}"', f'"{version}"', 1))
        git(checkout, "commit", "-q", "-a", "-m", "next")

    commit(VERSION)
    assert refusal_of(checkout) == ""
    (checkout / folder / "README.md").write_text("# Changed\n")
    for version in (VERSION, "0.12.9"):
        commit(version)
        assert refusal_of(checkout) == f"{folder} has changed since {first}. Raise its version in {named}."
    commit("10.0.0")
    assert refusal_of(checkout) == ""
    commit("10.0.0", released.replace(first, "0123456"))
    assert "Fetch its history." in refusal_of(checkout)
    git(checkout, "reset", "-q", "--hard", first)
