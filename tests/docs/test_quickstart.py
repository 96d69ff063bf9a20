"""docs/quickstart.md, run from top to bottom as a new user would: bash, curl, the real server."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from tests.docs.sessions import matches, printed_lines, run, steps, terminal, unmet
from tests.support.server import Server
from tools.servers.ports import free_port

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(180)]

DOCUMENT = Path(__file__).parents[2] / "docs" / "quickstart.md"
PORT_IN_DOCUMENT = "8080"
KEY_IN_DOCUMENT = "pets_live_YourOwnKeyStandsHere"


def test_a_session_is_as_the_document_says(tmp_path: Path) -> None:
    """Every command of the quickstart succeeds, and prints what the page shows."""
    port = free_port()
    text = DOCUMENT.read_text(encoding="utf-8").replace(PORT_IN_DOCUMENT, str(port))
    start, *session = steps(text)
    assert start.command == "petstore serve", "the first command of the quickstart starts the service"
    shell = terminal(tmp_path, port=str(port))
    server = Server(tmp_path, port=port)
    server.child.command = start.command.split()
    server.child.start(shell | {"PETSTORE_ACCESS_LOG": "off", "PETSTORE_LOG_FORMAT": "text"})
    try:
        server.wait_until_ready()
        printed = printed_lines(server.log)
        assert matches(start.expected, printed), "\n".join(printed)
        key = re.search(r"pets_live_[0-9A-Za-z]{38}", server.log)
        assert key is not None
        for step in session:
            step.command = step.command.replace(KEY_IN_DOCUMENT, key[0])
        assert unmet(session, run(session, tmp_path, shell)) == ""
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(15) == 0
    finally:
        server.kill()
    assert (tmp_path / "petstore.db").exists()
