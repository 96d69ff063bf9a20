"""The client as a distribution of its own: its version, the rules of its code, its README.md."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib.metadata import requires, version
from pathlib import Path
from typing import Any

import petstore_client
import pytest

from tests.architecture.sources import ROOT, functions
from tests.architecture.test_rules import FILE_LINES, FUNCTION_LINES
from tests.support.backends import in_store
from tests.support.journal import ACTOR
from tests.support.server import Server, running_server
from tests.support.waiting import wait_for
from tools import release, sync_client

FOLDER = Path(petstore_client.__file__).parent
FILES = sorted(FOLDER.rglob("*.py"))
# Who may speak to the network, to clocks, threads and the system.
DRIVERS = {
    *("client.py", "runner.py", "waiters.py", "pool.py", "connection.py", "runtime.py", "listen.py"),
}
DRIVERS |= {"clock.py", "server.py", "fake.py"}  # in testing
_OUTSIDE = {"asyncio", "httpx2", "os", "random", "socket", "time"}


def imported(path: Path) -> set[str]:
    """The packages that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


def test_the_version_is_that_of_the_distribution() -> None:
    """`petstore_client.__version__` is what pip shows."""
    assert petstore_client.__version__ == version("petstore-client")


def test_the_service_serves_this_client(tmp_path: Path) -> None:
    """The service's package is what these sources build. After a change: `make clients`, and commit what is
    new."""
    made = next(release.build_clients(ROOT, tmp_path))
    served = ROOT / release.SERVED / made.name
    assert not release.differs(made, served), f"{served.name} is stale: make clients"


def test_it_needs_httpx2_alone() -> None:
    """Nothing of the service, which its users do not have."""
    assert [each.partition(">")[0] for each in requires("petstore-client") or []] == ["httpx2"]
    assert not any({"petstore", "tests"} & imported(path) for path in FILES)


def test_the_policy_does_nothing_itself() -> None:
    """What decides is told the time and what happened; only the drivers speak to the world outside."""
    assert {path.name: imported(path) & _OUTSIDE for path in FILES if path.name not in DRIVERS} == {
        path.name: set() for path in FILES if path.name not in DRIVERS
    }


def test_the_client_for_threads_is_made_from_the_one_for_asyncio() -> None:
    """`python -m tools.sync_client` makes _sync from _async after a change; the files' first line says so."""
    assert {
        file.name: file.read_text(encoding="utf-8") for file in FOLDER.glob("_sync/*.py")
    } == sync_client.made()


def test_files_and_functions_are_as_short_as_the_services() -> None:
    """Each file says in its first lines what is in it."""
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        assert len(text.splitlines()) <= FILE_LINES, path.name
        assert ast.get_docstring(tree), path.name
        for function in functions(tree):
            assert (function.end_lineno or 0) - function.lineno < FUNCTION_LINES, (path.name, function.name)


README = ROOT / "clients" / "python" / "README.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server with an empty store."""
    with running_server(tmp_path) as server:
        yield server


def check_mirror(server: Server, names: dict[str, Any]) -> None:
    """Wait until the example's mirror has what the service has, before and after a restore."""
    petstore, mirrored = server.client(), names["names"]
    shown = {pet.id: pet.name for pet in petstore.pets.list()}
    assert {"Rex", "Mia"} <= set(shown.values())
    wait_for(lambda: bool(mirrored == shown), "the mirror to have the animals")

    in_store(f"sqlite:///{server.database}", lambda store: store.events.note_restore(ACTOR))
    last = petstore.pets.create(name="Last", category_id=1)
    wait_for(lambda: mirrored == shown | {last.id: last.name}, "the mirror to go on after a restore")


@pytest.mark.e2e
def test_the_examples_run_one_after_another(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each goes on where the one before ended, as a reader would. The mirror has what the service has, also
    after a restore, and ends with its client."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PETSTORE_URL", f"http://127.0.0.1:{server.port}")
    monkeypatch.setenv("PETSTORE_KEY", server.key)
    assert len(EXAMPLES) >= 5
    names: dict[str, Any] = {}
    for number, example in enumerate(EXAMPLES, 1):
        if "petstore.close()" in example:
            check_mirror(server, names)
        exec(compile(example, f"{README.name}, example {number}", "exec"), names)
    names["mirroring"].join(20)
    assert not names["mirroring"].is_alive()
    printed = capsys.readouterr().out
    for expected in (
        "1 available",
        "Rex",
        "Mia",
        "of 60 calls until",
        "There is no animal",
        "free",
        "pet.created",
        "Ida 201 /v1/pets/",
        "order-4711",
    ):
        assert expected in printed
