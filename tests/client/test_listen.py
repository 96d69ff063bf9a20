"""petstore-listen: what a program on this machine gets, what a developer reads, how it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from pathlib import Path

import httpx2
import pytest
from petstore_client import Event, Runtime, listen
from petstore_client.webhooks import verify
from standardwebhooks.webhooks import Webhook

from tests.architecture.sources import ROOT
from tests.docs.documents import text_of
from tests.support.receiver import Receiver, receiving
from tests.support.server import Server, running_server
from tests.support.waiting import wait_for
from tools.servers.child import Child
from tools.servers.ports import free_port

SECRET = "whsec_" + "a" * 43 + "="
EVENT = Event("evt_7f_1", "pet.created", datetime(2026, 11, 22, 21, 45, 43, 45_000, UTC), {"name": "Søren"})


class Listening(Child):
    """The program as a process, and what it has printed."""

    def __init__(self, folder: Path, server: Server | None, *arguments: str, **variables: str) -> None:
        lines = folder / f"lines-{len(list(folder.glob('lines-*')))}"
        super().__init__(
            "petstore-listen", [sys.executable, "-m", "petstore_client.listen", *arguments], lines
        )
        url, key = (server.base_url, server.key) if server else ("", "")
        self.start(os.environ | {"PETSTORE_URL": url, "PETSTORE_KEY": key} | variables)

    def wait_for(self, text: str) -> None:
        self.wait_until(lambda: text in self.said)

    def end(self, number: int) -> str:
        """End it by a signal, at which it ends well; its last line."""
        self.process.send_signal(number)
        assert self.process.wait(20) == 0, self.said
        return self.said.splitlines()[-1]


@contextmanager
def listening(folder: Path, server: Server | None, *arguments: str, **variables: str) -> Iterator[Listening]:
    """The program, which ends with the block at the latest."""
    program = Listening(folder, server, *arguments, **variables)
    try:
        yield program
    finally:
        program.kill()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server with an empty store."""
    with running_server(tmp_path, access_log="off") as server:
        yield server


@pytest.mark.e2e
def test_each_event_arrives_signed_and_has_a_line(server: Server, tmp_path: Path) -> None:
    """Each event arrives as the service writes it, signed with the secret that is shown. At Ctrl-C the
    program says how to go on; from there, with a secret and types, come those of the events since."""
    with receiving() as receiver:
        with listening(tmp_path, server, "--forward", receiver.address) as program:
            program.wait_for("secret whsec_")
            secret = re.findall("whsec_\\S+", program.said)[0]
            wait_for(lambda: _waits(server), "the program to follow")
            pet = server.client().pets.create(name="Søren \N{DOG FACE}", category_id=1)
            program.wait_for(": 204")
            last = program.end(signal.SIGINT)
        assert re.search(r"^pet\.created evt_\w+: 204$", program.said, re.M)
        [(headers, body)] = receiver.got
        shown = server.request("GET", "/v1/events?type=pet.created").body
        assert shown == b"[" + body + b"]"
        assert verify(body, headers, secret).data["name"] == "Søren \N{DOG FACE}"
        assert Webhook(secret).verify(body, headers) == json.loads(body)
        assert headers["Content-Type"] == "application/json"

        bookmark = last.partition("Ended. Go on from here with --after ")[2]
        server.client().orders.place(pet.id)
        server.client().pets.create(name="Mia", category_id=1)
        chosen = ("--type", "order.*", "--type", "pet.created", "--after", bookmark, "--secret", SECRET)
        with listening(tmp_path, server, "--forward", receiver.address + "2", *chosen) as program:
            wait_for(lambda: program.said.count(": 404") == 2, "the two events")
            program.end(signal.SIGTERM)
    events = [verify(body, headers, SECRET) for headers, body in receiver.got[1:]]
    assert [event.type for event in events] == ["order.created", "pet.created"]


def _waits(server: Server) -> bool:
    return "\npetstore_events_waiting 1" in server.request("GET", "/metrics", key="").body.decode()


@pytest.mark.e2e
def test_what_the_service_refuses_ends_it(server: Server, tmp_path: Path) -> None:
    """It ends with the service's sentence, and without a traceback."""
    for arguments, said in ((("--after", "x"), "bookmark"), (("--type", "Pet"), "type")):
        with listening(tmp_path, server, "--forward", "http://localhost:9/", *arguments) as program:
            assert program.process.wait(20) == 1
            assert re.match(f"petstore-listen: .*{said}", program.said.splitlines()[-1]), program.said


@pytest.mark.e2e
def test_a_service_that_is_away_is_waited_for(tmp_path: Path) -> None:
    """The developer reads why nothing comes."""
    url, key = f"http://127.0.0.1:{free_port()}", "pets_test_" + "k" * 38
    arguments = ("--forward", "http://localhost:9/")
    with listening(tmp_path, None, *arguments, PETSTORE_URL=url, PETSTORE_KEY=key) as program:
        program.wait_for(f"listEvents got no answer from {url}/v1.")
        assert program.end(signal.SIGINT) == "Ended."


def tried(monkeypatch: pytest.MonkeyPatch, port: int, pause: Callable[[float], object]) -> str:
    """The outcome of an event at a port of this machine; `pause` is called instead of waiting."""
    monkeypatch.setattr(listen, "PROCESS", Runtime(wait=lambda _, seconds: pause(seconds)))
    with httpx2.Client(trust_env=False) as http:
        post = partial(listen._post, http, f"http://127.0.0.1:{port}/hook?of=shop", SECRET)
        return listen._tried("pet.created evt_7f_1", EVENT, post)


def test_an_event_that_nobody_takes_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An event is passed over after four tries, with a line for each pause: 1, 2 and 4 seconds."""
    pauses: list[float] = []
    assert tried(monkeypatch, free_port(), pauses.append) == "no answer in 4 tries, passed over"
    assert pauses == [1, 2, 4]
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "pet.created evt_7f_1: no answer (ConnectError), sent again in 1 s"
    assert len(lines) == 3


def test_an_event_arrives_once_somebody_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next try finds the receiver that has started meanwhile."""
    port = free_port()
    with ExitStack() as opened:
        started: list[Receiver] = []
        said = tried(monkeypatch, port, lambda _: started.append(opened.enter_context(receiving(port))))
    assert said == "204"
    [(headers, body)] = started[0].got
    assert verify(body, headers, SECRET) == EVENT


@pytest.mark.parametrize(
    ("arguments", "variables", "said"),
    [
        ([], {}, "--forward"),
        (
            ["--forward", "https://shop.example/hook"],
            {},
            "'https://shop.example/hook' is not on this machine",
        ),
        (["--forward", "http://10.0.0.1/"], {}, "make a webhook"),
        (["--forward", "https://localhost/"], {}, "such as http://127.0.0.1:3000/hook"),
        (["--forward", "http://localhost:99999999/"], {}, "is not on this machine"),
        (["--forward", "3000"], {}, "is not on this machine"),
        (["--forward", "http://localhost/\0"], {}, "is not on this machine"),
        (["--forward", "http://localhost/", "--secret", "x"], {}, "This is not a webhook's secret"),
        (["--forward", "http://localhost/"], {"PETSTORE_KEY": ""}, "Set PETSTORE_URL"),
        (["--forward", "http://localhost/"], {"PETSTORE_URL": ""}, "PETSTORE_KEY to an API key"),
        (["--forward", "http://localhost/"], {"PETSTORE_KEY": "x"}, "This is not an API key"),
        (["--forward", "http://localhost/"], {"PETSTORE_URL": "shop"}, "starts with https://"),
        (["--forward", "http://localhost/"], {"PETSTORE_URL": "http://10.0.0.1/v1"}, "Use https. In"),
        (["--forw", "http://localhost/"], {}, "--forward"),
    ],
)
def test_wrong_use_says_what_to_do_and_ends_with_2_before_it_sends(
    arguments: Sequence[str],
    variables: dict[str, str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A script can tell it from a refusal of the service."""
    right = {"PETSTORE_URL": "http://localhost:9", "PETSTORE_KEY": "pets_test_" + "k" * 38}
    for name, value in (right | variables).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "argv", ["petstore-listen", *arguments])
    with pytest.raises(SystemExit) as caught:
        listen.main()
    assert caught.value.code == 2
    assert said in capsys.readouterr().err


def test_the_distribution_installs_the_program_under_its_name() -> None:
    """The guide calls it by this name."""
    project = tomllib.loads(text_of(ROOT / "clients" / "python" / "pyproject.toml"))
    module, _, function = project["project"]["scripts"]["petstore-listen"].partition(":")
    assert getattr(import_module(module), function) is listen.main
