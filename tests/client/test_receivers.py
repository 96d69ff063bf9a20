"""The receivers in clients/python/receivers: each takes what is signed, once, and refuses all else."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import httpx2
import pytest
from petstore_client.webhooks import sign

from tests.architecture.sources import ROOT
from tests.support.machine import folder, program
from tests.support.outside import NODE_MODULES, node_module
from tools.servers.ports import free_port

FOLDER = ROOT / "clients" / "python" / "receivers"
SECRET, OTHER = "whsec_" + "a" * 43 + "=", "whsec_" + "b" * 43 + "="
EVENT = {"id": "evt_7f_1", "type": "pet.created", "timestamp": "2026-11-22T21:45:42Z", "data": {"name": "Sø"}}
BODY = json.dumps(EVENT, ensure_ascii=False).encode()
ADDRESS = "http://receiver.example/hook"
Send = Callable[[Mapping[str, str], bytes], int]


def loaded(path: Path) -> ModuleType:
    """A program as a module of its own."""
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def starlette() -> Iterator[Send]:
    """The application in an event loop of its own for each request."""
    module = loaded(FOLDER / "starlette_receiver.py")

    async def post(headers: Mapping[str, str], body: bytes) -> int:
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(module.app)) as http:
            return (await http.post(ADDRESS, headers=headers, content=body)).status_code

    yield lambda headers, body: asyncio.run(post(headers, body))
    assert list(module.received) == [EVENT["id"]]


@contextmanager
def process(place: Path, *command: str | Path) -> Iterator[tuple[subprocess.Popen[bytes], httpx2.Client]]:
    """A program that says `ready` when it listens at PORT, and what speaks to it."""
    port = free_port()
    started = subprocess.Popen(
        command,
        cwd=place,
        env=os.environ | {"PORT": str(port)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert started.stdout is not None
    try:
        assert started.stdout.readline() == b"ready\n"
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as http:
            yield started, http
    finally:
        started.kill()
        started.communicate()


def sending(http: httpx2.Client) -> Send:
    """Sends to the receiver of a process."""
    kind = {"Content-Type": "application/json"}
    return lambda headers, body: http.post("/hook", headers=kind | {**headers}, content=body).status_code


# Ends with its input, and says what a receiver has.
SERVES = """
import os, sys
from importlib import import_module
from threading import Thread
from wsgiref.simple_server import make_server

module = import_module(sys.argv[1])
server = make_server("127.0.0.1", int(os.environ["PORT"]), module.app)
Thread(target=server.serve_forever, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
print(*getattr(module, "received", ()))
"""


@contextmanager
def wsgi(name: str = "wsgi_receiver") -> Iterator[Send]:
    """The application in the server of the standard library."""
    with process(FOLDER, sys.executable, "-c", SERVES, name) as (started, http):
        yield sending(http)
        printed, _ = started.communicate()
        assert printed.decode().split() == [EVENT["id"]]


@contextmanager
def node() -> Iterator[Send]:
    """The program as it is."""
    with process(FOLDER, program("node"), "node_receiver.mjs") as (_, http):
        yield sending(http)


@contextmanager
def express() -> Iterator[Send]:
    """The program beside an Express, which Node.js looks for above it."""
    node_module("express")
    with folder() as place:
        shutil.copytree(FOLDER, place, dirs_exist_ok=True)
        (place / "node_modules").symlink_to(NODE_MODULES)
        with process(place, program("node"), "express_receiver.mjs") as (_, http):
            yield sending(http)


RECEIVERS = {
    "wsgi": wsgi,
    "flask": partial(wsgi, "flask_receiver"),
    "django": partial(wsgi, "django_receiver"),
    "node": node,
    "express": express,
}


@pytest.mark.parametrize(
    "receiver",
    [starlette, *(pytest.param(each, marks=pytest.mark.e2e, id=name) for name, each in RECEIVERS.items())],
)
def test_it_takes_what_is_signed_and_nothing_else(
    receiver: Callable[[], AbstractContextManager[Send]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """204 for an event, also when it comes again or another secret signs too; 400 for a foreign signature, a
    changed body, an old or future request, and one without a header."""
    monkeypatch.setenv("WEBHOOK_SECRET", SECRET)
    now = int(time.time())
    signed = sign("evt_7f_1", now, BODY, SECRET)
    both = f"{sign('evt_7f_1', now, BODY, OTHER)['webhook-signature']} {signed['webhook-signature']}"
    with receiver() as send:
        assert [send(signed, BODY), send(signed | {"webhook-signature": both}, BODY)] == [204, 204]
        assert send(sign("evt_7f_1", now, BODY, OTHER), BODY) == 400
        assert send(signed, BODY.replace(b"created", b"deleted")) == 400
        for moment in (now - 310, now + 310):
            assert send(sign("evt_7f_1", moment, BODY, SECRET), BODY) == 400
        for missing in signed:
            headers = {name: value for name, value in signed.items() if name != missing}
            assert send(headers, BODY) == 400
