"""`petstore serve`: checks what can be checked before the start, then hands over to the HTTP server."""

from __future__ import annotations

import ctypes
import signal
import socket
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from petstore.cli.groups import examples
from petstore.cli.running import Session, with_store
from petstore.errors import Conflict
from petstore.plans import FREE

if TYPE_CHECKING:
    from petstore.asgi import Application
    from petstore.config import Settings
    from petstore.opening import Store

_HEADER_TIMEOUT_MS = 10_000
# Larger than the application's own limit on the head, so that it can answer 431 with an Error body.
_HEAD_BUFFER_BYTES = 64 * 1024
_BACKLOG = 2_048
_CONNECTIONS_MAX = 16_384
_STOP_SECONDS = 10
_PR_SET_PDEATHSIG = 1


@click.command(epilog=examples("petstore serve", "PETSTORE_HOST=0.0.0.0 PETSTORE_PORT=9000 petstore serve"))
@click.pass_obj
def serve(session: Session) -> None:
    """Run the service until it is told to stop.

    Ctrl+C or SIGTERM stops it: what was accepted is carried out first. Creates and migrates the database
    when needed. On the first start, and only on a loopback address, it issues a key on the Free plan for an
    account "local" and prints it once.
    """
    from granian import Granian

    from petstore import opening

    settings = session.settings
    _check_port_is_free(settings)
    with opening.lock_for_serving(settings):
        with_store(session, partial(_welcome, settings), create=True)
        server = Granian(
            "petstore.asgi",
            address=settings.host,
            port=settings.port,
            respawn_failed_workers=True,
            workers_kill_timeout=_STOP_SECONDS,
            **granian_options(),
        )
        server.serve(target_loader=partial(_load, settings), wrap_loader=False)
    click.echo("Stopped.", err=True)


def _load(settings: Settings) -> Application:
    """Runs in the worker's process."""
    from petstore.asgi import Application

    _end_with_parent()
    return Application(settings)


def _end_with_parent() -> None:
    """Ask Linux for a SIGTERM when the parent is gone: a killed `petstore serve` leaves no worker behind."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def granian_options() -> dict[str, Any]:
    """How the HTTP server is set; the benchmark's ceiling runs on the same."""
    from granian.constants import HTTPModes, Interfaces, Loops
    from granian.http import HTTP1Settings

    return {
        "interface": Interfaces.ASGI,
        "loop": Loops.uvloop,
        "http": HTTPModes.http1,
        "websockets": False,
        "backlog": _BACKLOG,
        "backpressure": _CONNECTIONS_MAX,
        "http1_settings": HTTP1Settings(
            header_read_timeout=_HEADER_TIMEOUT_MS, max_buffer_size=_HEAD_BUFFER_BYTES
        ),
        "log_enabled": False,
    }


async def _welcome(settings: Settings, store: Store) -> None:
    """Tell where the service listens; on a first start on loopback, with a key that works."""
    here = f"http://{_url_host(settings.host)}:{settings.port}"
    say = partial(click.echo, err=True)
    public = f", for clients at {settings.base_url}" if settings.base_url else ""
    say(f"Pet Store Service at {here}/v1{public}, reference at {here}/docs. Ctrl+C stops it.")
    if not await store.is_empty():
        return
    if not settings.is_loopback:
        say("No account yet: petstore accounts add NAME --plan free, then petstore keys issue NAME")
        return
    await store.keys.add_account("local", FREE)
    issued = await store.keys.issue("local", settings.environment, label="first start")
    say("\nFirst start: here is a key on the Free plan for the account 'local'. It is shown only now.\n")
    say(f"  {issued.secret}\n\nTry it:\n")
    say(f"  curl -i -H 'Authorization: Bearer {issued.secret}' {here}/v1/pets\n")


def _url_host(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _check_port_is_free(settings: Settings) -> None:
    """The HTTP server would share a taken port in silence, and two services would answer by turns."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except OSError as error:
            raise Conflict(
                f"Can't listen on {settings.host}:{settings.port}: {error.strerror or error}."
                " Stop what uses it, or set PETSTORE_HOST and PETSTORE_PORT."
            ) from error
