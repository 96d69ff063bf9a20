"""README.md's first minute and docs/quickstart.md, typed from top to bottom by a new user on one server."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from petstore.core.keys import KEY_PATTERN
from tests.docs.documents import ROOT, fences, section, text_of
from tests.docs.sessions import Step, matches, printed_lines, run, steps, terminal, unmet
from tests.support.samples import run_python
from tests.support.server import Server
from tests.support.terminal import terminal as terminal_of
from tests.support.waiting import wait_for
from tools.servers.ports import free_port

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
PORT_IN_DOCUMENT = "8080"
KEY_IN_DOCUMENT = "pets_live_YourOwnKeyStandsHere"


def test_a_session_is_as_the_documents_say(tmp_path: Path) -> None:
    """Every command succeeds and prints what is shown; the quickstart goes on with the README's server."""
    log = tmp_path / "server.log"
    with terminal_of(log) as screen:
        server = Server(tmp_path, port=free_port(), log=log, how={"stderr": screen})
        _type(server, tmp_path)


def _type(server: Server, tmp_path: Path) -> None:
    shell = terminal(tmp_path, port=str(server.port))
    first = section(text_of(ROOT / "README.md"), "A minute to the first animal")
    quickstart = text_of(ROOT / "docs" / "quickstart.md")
    (_, start), (_, started), (_, add), (_, added), (_, program) = fences(filled(first, server))
    assert start == "make serve\n"
    server.child.command = ["petstore", "serve"]  # what make does in the end
    server.child.start(shell | {"PETSTORE_ACCESS_LOG": "off"})
    try:
        server.wait_until_ready()
        wait_for(lambda: re.search(r"curl -i .*\n\n", server.log) is not None, "the last line")
        printed = printed_lines(_COLOUR.sub("", server.log))
        assert matches(started.splitlines(), printed), "\n".join(printed)
        issued = KEY_PATTERN.search(server.log)
        assert issued is not None
        server.key = issued[0]
        session = [
            Step(quiet(printed[-1].strip()), ["HTTP/1.1 200 OK", "[]"]),
            Step(quiet(filled(add, server)), added.splitlines()),
            *steps(filled(quickstart, server)),
        ]
        assert unmet(session, run(session, tmp_path, shell)) == ""
        assert "Rex" in run_python(filled(program, server), {}).succeeded()
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(15) == 0
    finally:
        server.kill()
    assert [file.name for file in tmp_path.glob("*.db")] == ["petstore.db"]


def filled(text: str, server: Server) -> str:
    """The text with this server's port, and its key once there is one."""
    text = text.replace(PORT_IN_DOCUMENT, str(server.port))
    return text.replace(KEY_IN_DOCUMENT, server.key or KEY_IN_DOCUMENT)


def quiet(command: str) -> str:
    """Without the progress that curl shows where its output is no terminal."""
    return command.replace("curl -i ", "curl -si ")
