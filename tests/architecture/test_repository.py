"""What is committed: one version everywhere, locks that agree, vendored files as they came, no machine."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import petstore
from tests.architecture.sources import ROOT, tracked

# With a stroke in each, so that this file does not name what it forbids.
_FORBIDDEN = """
py|pi.org python|hosted.org npm|js.org npm|js.com un|pkg.com js|delivr.net cdn|js.com cdn|js.cloudflare
conda|.anaconda proxy.|golang.org index|-url
/ho|me/ /ro|ot/ /Us|ers/ /wo|rk/ /t|mp/ /mn|t/ C:|\\ .pyenv|/ /ven|v/bin
"""
FORBIDDEN = _FORBIDDEN.replace("|", "").split()

_PIN = re.compile(r"^([a-z0-9][a-z0-9._-]*)==(\S+?)(?: ;.*)?(?: \\)?$", re.MULTILINE)
_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def pins(name: str) -> dict[str, str]:
    """Versions by package in a lock file."""
    return dict(_PIN.findall((ROOT / name).read_text(encoding="utf-8")))


def committed_texts() -> list[tuple[Path, str]]:
    """Every tracked text."""
    found = []
    for path in tracked():
        try:
            found.append((path.relative_to(ROOT), path.read_text(encoding="utf-8")))
        except UnicodeDecodeError:
            continue
    return found


class TestVersion:
    """One number."""

    def test_the_package_and_the_project_agree(self) -> None:
        """`petstore.__version__` is what pyproject.toml says; change both."""
        assert petstore.__version__ == _PROJECT["project"]["version"]

    def test_the_changelog_knows_it(self) -> None:
        """A release without an entry in CHANGELOG.md is one that nobody can read about."""
        headings = re.findall(
            r"^## +\[?([^\s\]]+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M
        )
        assert petstore.__version__ in headings, "give the version a heading `## x.y.z` in CHANGELOG.md"

    def test_the_changelog_names_the_last_commit_of_each_release(self) -> None:
        """The upgrade is tried from it, and clients are compared with it. A commit can't name itself: the
        first change after a release does it."""
        sections = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.M)[1:]
        assert sections[0].startswith("[Unreleased]\n")
        is_just_cut = not sections[0].partition("\n")[2].strip()
        for section in sections[2 if is_just_cut else 1 :]:
            assert re.search(r"\A\[.*\n\nIts last commit is [0-9a-f]{7,40}\b", section), section[:40]


class TestLocks:
    """Two lock files, one for use and one for work, hashed."""

    def test_each_pin_for_use_is_the_pin_for_work(self) -> None:
        """The suite runs with what is installed: `make lock` writes both together."""
        use, work = pins("requirements.lock"), pins("requirements-dev.lock")
        assert len(use) > 5
        assert {name: work.get(name) for name in use} == use

    def test_every_dependency_is_locked(self) -> None:
        """pyproject.toml and the locks are about the same packages: run `make lock`."""
        direct = {re.split(r"[\[<>=!~ ;]", line)[0] for line in _PROJECT["project"]["dependencies"]}
        assert direct <= set(pins("requirements.lock"))
        groups = _PROJECT["dependency-groups"]["dev"]
        assert {re.split(r"[\[<>=!~ ;]", line)[0] for line in groups} <= set(pins("requirements-dev.lock"))

    def test_every_pin_has_a_hash(self) -> None:
        """Installation is refused for anything else than what was locked."""
        for name in ("requirements.lock", "requirements-dev.lock"):
            text = (ROOT / name).read_text(encoding="utf-8")
            blocks = re.split(r"\n(?=[a-z0-9])", text)
            bare = [
                block.split()[0] for block in blocks if _PIN.match(block) and "--hash=sha256:" not in block
            ]
            assert bare == [], f"{name}: run `make lock`"

    def test_packages_from_npm_are_exact_and_hashed(self) -> None:
        """`tests/consumers` asks for one version of each; the lock names no place to have it from. After a
        change of package.json: `npm install --package-lock-only` there."""
        folder = ROOT / "tests" / "consumers"
        asked = json.loads((folder / "package.json").read_text(encoding="utf-8"))["dependencies"]
        locked = json.loads((folder / "package-lock.json").read_text(encoding="utf-8"))["packages"]
        assert locked.pop("")["dependencies"] == asked
        assert {name: locked[f"node_modules/{name}"]["version"] for name in asked} == asked
        bare = [name for name, of in locked.items() if "integrity" not in of or "resolved" in of]
        assert bare == []


class TestWhatIsCommitted:
    """Nothing of one machine, no address that a firewall may close."""

    def test_no_file_names_a_package_host_or_a_path_of_one_machine(self) -> None:
        """Say `pip install`, or name the package; use a relative path, or one that a setting names. (/var/lib
        and /etc are everybody's.)"""
        faults = [
            f"{path} has {text!r}" for path, whole in committed_texts() for text in FORBIDDEN if text in whole
        ]
        assert faults == []

    def test_no_file_holds_a_merge_conflict(self) -> None:
        """Decide for one side, or write both as one, before the commit."""
        marks = re.compile(r"^(?:<{7} |>{7} )", re.MULTILINE)
        assert [str(path) for path, text in committed_texts() if marks.search(text)] == []

    def test_no_file_holds_a_key(self) -> None:
        """Keys in documents are shortened with an ellipsis, or fail their checksum."""
        from petstore.core.keys import KEY_PATTERN, is_wellformed

        faults = [
            f"{path}: {found[0][:14]}…"
            for path, text in committed_texts()
            for found in KEY_PATTERN.finditer(text)
            if is_wellformed(found[0])
        ]
        assert faults == []

    def test_nothing_that_is_made_is_committed(self) -> None:
        """Databases, environments and caches are ignored by git."""
        made = {".db", ".pyc", ".lock.partial", ".sqlite", ".whl"}
        served = (
            ROOT / "src" / "petstore" / "site" / "clients"
        )  # of these tests/client holds the newest to its sources
        assert [str(path) for path in tracked() if path.suffix in made and path.parent != served] == []
