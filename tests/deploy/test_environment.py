"""tools/environment, in a small project whose locks name nothing: what it makes, keeps, removes and says."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT
from tests.support import machine

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.xdist_group("environment"),
]

BASE = str(sys._base_executable)  # type: ignore[attr-defined]
LOCKS = ("requirements.lock", "requirements-scale.lock", "requirements-dev.lock")
_PROJECT = """\
[project]
name = "small"
version = "1"
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""
_BACKEND = """\
import zipfile

def build_editable(directory, settings=None, metadata=None):
    with zipfile.ZipFile(f"{directory}/small-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("small.py", "")
        wheel.writestr("small-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: small\\nVersion: 1\\n")
        wheel.writestr("small-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nTag: py3-none-any\\n")
        wheel.writestr("small-1.dist-info/RECORD", "")
    return "small-1-py3-none-any.whl"
"""


# Where only the decisions of the script matter: an environment without pip, and a pip that notes its words.
_STAND_INS = {
    "venv.py": """\
import os
import sys

os.environ.pop("PYTHONPATH")
os.execv(sys.executable, [sys.executable, "-m", "venv", "--without-pip", *sys.argv[1:]])
""",
    "pip.py": """\
import sys

with open(__file__ + ".log", "a") as log:
    print(*sys.argv[1:], file=log)
""",
}


class Project:
    """A checkout that every user can enter."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "tools").mkdir()
        shutil.copy(ROOT / "tools" / "environment", path / "tools")
        (path / "clients" / "python").mkdir(parents=True)
        for folder, name in ((path, "small"), (path / "clients" / "python", "client")):
            (folder / "pyproject.toml").write_text(_PROJECT.replace("small", name))
            (folder / "backend.py").write_text(_BACKEND.replace("small", name))
        for name in LOCKS:
            (path / name).write_text("# nothing\n")
        self._variables: dict[str, str] = {}

    def stand_in(self) -> Path:
        """Install nothing from now on: what pip would be told is in the returned file, a call a line."""
        folder = self.path / "stand-ins"
        folder.mkdir()
        for name, source in _STAND_INS.items():
            (folder / name).write_text(source)
        self._variables = {"PYTHONPATH": str(folder)}
        return folder / "pip.py.log"

    def install_again(self) -> None:
        """Install by the real pip, which is not in the environment."""
        self._variables = {}

    def make(self, kind: str, python: str = "", status: int = 0) -> str:
        """What it says; it has to end with this status."""
        kept = {
            name: text for name, text in os.environ.items() if not name.startswith(("PIP_", "VIRTUAL_ENV"))
        }
        done = subprocess.run(
            [self.path / "tools" / "environment", kind],
            env=kept | self._variables | {"PYTHON": python},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            umask=0o077,  # root's may be that
        )
        assert done.returncode == status, done.stderr
        return done.stderr

    def has(self, module: str) -> bool:
        """Whether the environment can import it, from its own packages."""
        command: list[str | Path] = [self.path / ".venv" / "bin" / "python", "-c", f"import {module}"]
        return not subprocess.run(command, capture_output=True, timeout=20, check=False).returncode

    def interpreter(self) -> str:
        return os.path.realpath(self.path / ".venv" / "bin" / "python")


@pytest.fixture
def project() -> Iterator[Project]:
    with machine.folder() as path:
        yield Project(path)


def test_what_only_installs_does_not_stay_where_the_service_runs(project: Project) -> None:
    """Scanners find no pip and no setuptools outside of the lock, and an update of the lock still works: it
    brings pip back for its own time. The service's user, who is not root, can read everything."""
    project.stand_in()
    assert "Installing requirements.lock" in project.make("serve", BASE)
    assert project.make("serve") == ""
    (project.path / "requirements.lock").write_text("# another nothing\n")
    project.install_again()
    assert "Installing requirements.lock" in project.make("serve")
    assert (project.has("small"), project.has("pip"), project.has("setuptools")) == (True, False, False)
    made = [path for path in (project.path / ".venv").rglob("*") if not path.is_symlink()]
    assert [path for path in made if not path.stat().st_mode & 0o004] == []


def test_pip_stays_for_work_on_the_code(project: Project) -> None:
    """It stays when the environment was one that serves, and when the lock of that one changes afterwards."""
    told = project.stand_in()
    project.make("serve", BASE)
    removed = told.read_text().count("uninstall")
    assert removed == 1
    project.make("develop")
    (project.path / "requirements.lock").write_text("# one more nothing\n")
    assert "Installing requirements.lock" in project.make("serve")
    assert told.read_text().count("uninstall") == removed


def test_an_interpreter_that_others_cannot_run_is_pointed_out(project: Project) -> None:
    """`make` warns that other users can't run an interpreter in a closed directory, as below /root, unless
    the checkout is closed to them too. Naming another one of the same version replaces it."""
    closed = project.path / "closed"
    closed.mkdir(mode=0o700)
    program = closed / "python3"
    shutil.copy(os.path.realpath(BASE), program)
    if subprocess.run([program, "-c", "import venv"], capture_output=True, check=False).returncode:
        pytest.skip("This Python does not run from another place.")
    project.stand_in()
    project.path.chmod(0o700)
    assert "Other users" not in project.make("serve", str(program))
    project.path.chmod(0o755)
    (project.path / "requirements.lock").write_text("# another nothing\n")
    said = project.make("serve", str(program))
    assert f"Other users can't run {program}." in said
    assert "make setup PYTHON=/usr/bin/python3" in said
    assert project.interpreter() == str(program)
    project.make("serve", BASE)
    assert project.interpreter() == os.path.realpath(BASE)


def test_another_program_is_no_interpreter(project: Project) -> None:
    """One sentence says so, without what the program says of itself; an older Python is named."""
    program = project.path / "perl"
    program.write_text(
        '#!/bin/sh\n[ "$1" = --version ] || exit 2\nprintf "\\nThis is perl 5\\n\\nCopyright\\n"\n'
    )
    program.chmod(0o755)
    needed = "The service needs Python 3.11 or newer: name one with make PYTHON=python3.11.\n"
    assert project.make("serve", str(program), 1) == f"{program} is not a Python. {needed}"
    program.write_text("#!/bin/sh\ncase $2 in *exit*) exit 1 ;; esac\necho Python 3.9\n")
    assert project.make("serve", str(program), 1) == f"{program} is Python 3.9. {needed}"
