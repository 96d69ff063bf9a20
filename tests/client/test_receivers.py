"""The receivers in clients/python/receivers: each takes what is signed, once, and refuses all else."""

from __future__ import annotations

import asyncio
import json
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType

import httpx2
import pytest
from petstore_client.webhooks import sign

from tests.architecture.sources import ROOT
from tests.support.machine import program
from tools.servers.ports import free_port

FOLDER = ROOT / "clients" / "python" / "receivers"
SECRET, OTHER = "whsec_" + "a" * 43 + "=", "whsec_" + "b" * 43 + "="
EVENT = {"id": "evt_7f_1", "type": "pet.created", "timestamp": "2026-11-22T21:45:42Z", "data": {"name": "Sø"}}
BODY = json.dumps(EVENT, ensure_ascii=False).encode()
ADDRESS = "http://receiver.example/hook"
Send = Callable[[Mapping[str, str], bytes], int]


def loaded(name: str) -> ModuleType:
    """A receiver as a module of its own."""
    spec = spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def starlette() -> Iterator[Send]:
    """The application in an event loop of its own for each request."""
    module = loaded("starlette_receiver")

    async def post(headers: Mapping[str, str], body: bytes) -> int:
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(module.app)) as http:
            return (await http.post(ADDRESS, headers=headers, content=body)).status_code

    yield lambda headers, body: asyncio.run(post(headers, body))
    assert list(module.received) == [EVENT["id"]]


@contextmanager
def wsgi() -> Iterator[Send]:
    """The application without a server."""
    module = loaded("wsgi_receiver")
    with httpx2.Client(transport=httpx2.WSGITransport(module.app)) as http:
        yield lambda headers, body: http.post(ADDRESS, headers=headers, content=body).status_code
    assert list(module.received) == [EVENT["id"]]


@contextmanager
def node() -> Iterator[Send]:
    """The program as a process."""
    port = free_port()
    started = subprocess.Popen(
        [program("node"), FOLDER / "node_receiver.mjs"],
        env={"WEBHOOK_SECRET": SECRET, "PORT": str(port)},
        stdout=subprocess.PIPE,
    )
    assert started.stdout is not None
    try:
        assert started.stdout.readline() == b"ready\n"
        with httpx2.Client(trust_env=False) as http:
            address = f"http://127.0.0.1:{port}/hook"
            yield lambda headers, body: http.post(address, headers=headers, content=body).status_code
    finally:
        started.kill()
        started.communicate()


@pytest.mark.parametrize("receiver", [starlette, wsgi, pytest.param(node, marks=pytest.mark.e2e)])
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
