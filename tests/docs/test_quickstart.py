"""README.md's first minute and docs/quickstart.md, each typed from top to bottom by a new user."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from petstore.core.keys import KEY_PATTERN
from tests.docs.documents import ROOT, fences, section, text_of
from tests.docs.sessions import Step, matches, printed_lines, run, steps, terminal, unmet
from tests.support.server import Server
from tests.support.terminal import terminal as terminal_of
from tests.support.waiting import wait_for
from tools.servers.ports import free_port

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
PORT_IN_DOCUMENT = "8080"
KEY_IN_DOCUMENT = "pets_live_YourOwnKeyStandsHere"


@dataclass(frozen=True)
class Started:
    """A server that began as the README says, in a folder of its own, and what it printed."""

    server: Server
    shell: dict[str, str]
    printed: list[str]


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    """It stops by Ctrl+C, and leaves its database."""
    log = tmp_path / "server.log"
    with terminal_of(log) as screen:
        server = Server(tmp_path, port=free_port(), log=log, how={"stderr": screen})
        shell = terminal(tmp_path, port=str(server.port))
        server.child.command = ["petstore", "serve"]  # what make does in the end
        server.child.start(shell | {"PETSTORE_ACCESS_LOG": "off"})
        try:
            server.wait_until_ready()
            wait_for(lambda: re.search(r"curl -i .*\n\n", server.log) is not None, "the last line")
            issued = KEY_PATTERN.search(server.log)
            assert issued is not None
            server.key = issued[0]
            yield Started(server, shell, printed_lines(_COLOUR.sub("", server.log)))
            server.process.send_signal(signal.SIGINT)
            assert server.process.wait(15) == 0
        finally:
            server.kill()
    assert [file.name for file in tmp_path.glob("*.db")] == ["petstore.db"]


def test_the_readme_leads_to_the_first_animal(started: Started, tmp_path: Path) -> None:
    """What the first start prints, and the commands below it."""
    first = section(text_of(ROOT / "README.md"), "A minute to the first animal")
    server, printed = started.server, started.printed
    (_, start), (_, shown), (_, add), (_, added) = fences(filled(first, server))
    assert start == "make serve\n"
    assert matches(shown.splitlines(), printed), "\n".join(printed)
    session = [
        Step(quiet(printed[-1].strip()), ["HTTP/1.1 200 OK", "[]"]),
        Step(quiet(add), added.splitlines()),
    ]
    assert unmet(session, run(session, tmp_path, started.shell)) == ""


def test_the_quickstart_leads_to_a_delivery(started: Started, tmp_path: Path) -> None:
    """Every command succeeds in an empty store, in the page's order, and prints what is shown."""
    session = steps(filled(text_of(ROOT / "docs" / "quickstart.md"), started.server))
    assert unmet(session, run(session, tmp_path, started.shell)) == ""


def filled(text: str, server: Server) -> str:
    """The text with this server's port, and its key once there is one."""
    text = text.replace(PORT_IN_DOCUMENT, str(server.port))
    return text.replace(KEY_IN_DOCUMENT, server.key or KEY_IN_DOCUMENT)


def quiet(command: str) -> str:
    """Without the progress that curl shows where its output is no terminal."""
    return command.replace("curl -i ", "curl -si ")
