"""README.md's first minute, and the served pages from the quickstart to a delivery by the client, each typed
from top to bottom by a new user."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from petstore.core.keys import KEY_PATTERN
from tests.docs.documents import ROOT, fences, section, text_of
from tests.docs.sessions import Step, matches, printed_lines, run, steps, terminal, unmet
from tests.docs.test_samples import play, samples
from tests.support.server import Server
from tests.support.terminal import terminal as terminal_of
from tests.support.waiting import wait_for
from tools.servers.ports import free_port

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
PORT_IN_DOCUMENT = "8080"
KEY_IN_DOCUMENT = re.compile(r"pets_(live|test)_YourOwnKeyStandsHere")


@dataclass(frozen=True)
class Started:
    """A server that began as the README says, in a folder of its own, and what it printed."""

    server: Server
    shell: dict[str, str]
    printed: list[str]


@pytest.fixture
def started(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Started]:
    """The service of the stage that the test names, else of both. Ctrl+C stops it; its database stays."""
    log = tmp_path / "server.log"
    with terminal_of(log) as screen:
        server = Server(tmp_path, port=free_port(), log=log, how={"stderr": screen})
        alone = {"stage": request.param} if hasattr(request, "param") else {}
        shell = terminal(tmp_path, port=str(server.port), **alone)
        server.child.command = [sys.executable, "-m", "tools.serve"]  # what make does in the end
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        server.child.start(shell | {"PETSTORE_ACCESS_LOG": "off", "PYTHONPATH": path})
        try:
            server.wait_until_ready()
            ends = 1 if alone else 2
            wait_for(lambda: len(re.findall(r"curl -i .*\n\n", server.log)) == ends, "the last line")
            first = server.log if alone else server.log.partition("\nstaging: ")[0]
            server.key = KEY_PATTERN.findall(first)[0]
            yield Started(server, shell, printed_lines(_COLOUR.sub("", first)))
            server.process.send_signal(signal.SIGINT)
            assert server.process.wait(15) == 0
        finally:
            server.kill()
    made = {"petstore.db"} if alone else {"petstore.db", "petstore-staging.db"}
    assert {file.name for file in tmp_path.glob("*.db")} == made


def test_the_readme_leads_to_the_first_answer(started: Started, tmp_path: Path) -> None:
    """What the first start prints, and its last line as pasted."""
    first = section(text_of(ROOT / "README.md"), "A minute to the first answer")
    server, printed = started.server, started.printed
    (_, start), (_, shown) = fences(filled(first, server))
    assert start == "make serve\n"
    assert matches(shown.splitlines(), printed), "\n".join(printed)
    session = [Step(quiet(printed[-1].strip()), ["HTTP/1.1 200 OK", "[]"])]
    assert unmet(session, run(session, tmp_path, started.shell)) == ""


@pytest.mark.parametrize("started", ["staging"], indirect=True)
def test_the_pages_lead_to_a_delivery_by_the_client(started: Started, tmp_path: Path) -> None:
    """Every command of the quickstart succeeds in an empty store, in order, and prints what is shown. With
    the key that it ends with, and the client by the line of its page, the guide's Python delivers."""
    began = time.monotonic()
    server, shell = started.server, started.shell
    quickstart, clients, guide = (
        filled(server.request("GET", f"/docs/{name}.md").body.decode(), server)
        for name in ("quickstart", "clients", "guide")
    )
    install = next(code for _, code in fences(clients) if code.startswith("pip "))
    session = [*steps(quickstart), Step("echo $PETSTORE_KEY", ["..."]), Step(install, ["..."])]
    client = {"PYTHONPATH": str(tmp_path / "client")}
    # What the client needs is in the environment of the tests.
    pip = {"PIP_TARGET": client["PYTHONPATH"], "PIP_NO_DEPS": "1", "PIP_NO_INDEX": "1"}
    results = run(session, tmp_path, shell | pip)
    assert unmet(session, results) == ""
    variables = {"PETSTORE_URL": f"{server.base_url}/v1", "PETSTORE_KEY": results[-2][1][0]}
    blocks = [sample for sample in samples(guide) if sample.language == "python"]
    last = next(
        at for at, sample in enumerate(blocks, 1) if sample.printed and "delivered True" in sample.printed
    )
    printed = play(blocks[:last], tmp_path, client | variables)
    assert printed[-1] == blocks[last - 1].printed
    seconds = time.monotonic() - began
    sys.stdout.write(f"{len(session) - 1} commands and {last} blocks of Python took {seconds:.1f} s\n")


def filled(text: str, server: Server) -> str:
    """The text with this server's port, and its key once there is one."""
    text = text.replace(PORT_IN_DOCUMENT, str(server.port))
    return KEY_IN_DOCUMENT.sub(server.key or r"\g<0>", text)


def quiet(command: str) -> str:
    """The output without the progress that curl shows where it has no terminal."""
    return command.replace("curl -i ", "curl -si ")
