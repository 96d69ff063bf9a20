"""`petstore serve`: checks what can be checked before the start, then hands over to the HTTP server."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
import resource
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
    from collections.abc import Callable

    from granian.server.common import AbstractServer

    from petstore.asgi import Application
    from petstore.config import Settings
    from petstore.opening import Store

_HEADER_TIMEOUT_MS = 10_000
# Larger than the application's own limit on the head, so that it can answer 431 with an Error body.
_HEAD_BUFFER_BYTES = 64 * 1024
_BACKLOG = 2_048
_CONNECTIONS_MAX = 16_384
_DESCRIPTORS_KEPT_BACK = 128
_STOP_MARGIN_SECONDS = 2  # a body may still be arriving when the service is told to stop
_PR_SET_PDEATHSIG = 1
_STOPS = {signal.SIGINT, signal.SIGTERM}
_START_CHECK_SECONDS = 0.05


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
            workers_kill_timeout=settings.body_timeout // 1_000 + _STOP_MARGIN_SECONDS,
            **granian_options(_raise_descriptor_limit()),
        )
        # granian would start a second worker beside the first, and both would count. A closed terminal sends
        # SIGHUP too: it stops the service, as it stops any other program.
        stop = _heed_once(server.signal_handler_interrupt)
        setattr(server, "signal_handler_interrupt", stop)  # noqa: B010  it is a method
        setattr(server, "signal_handler_reload", stop)  # noqa: B010
        _run(server, settings)
    click.echo("Stopped.", err=True)


def _run(server: AbstractServer[Any], settings: Settings) -> None:
    """Until the service is told to stop; a worker that dies is started again, unless it dies at once."""
    try:
        server.serve(target_loader=partial(_load, settings), wrap_loader=False)
    except SystemExit as end:
        # A worker that hears of a stop before its parent does, as from Ctrl+C, has not failed.
        if end.code and not server.interrupt_signal:
            raise click.ClickException(
                "The service ended, since its worker died twice within seconds; the log says why."
            ) from None


def _load(settings: Settings) -> Application:
    """Runs in the worker's process."""
    from petstore.asgi import Application

    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the parent gets it as well, and stops the worker in order
    if sys.platform == "linux":  # a parent that is killed leaves no worker behind
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    application = Application(settings)
    _heed_one_stop(asyncio.get_event_loop(), application)
    return application


def _heed_once(callback: Callable[..., object]) -> Callable[..., None]:
    """The parent's handler, which nothing but the first signal reaches.

    Both processes of the HTTP server may lock up when a second signal comes while they handle the first. Two
    are common: Ctrl+C goes to both, a service manager's SIGTERM too, and the parent passes on its own.
    """
    process = os.getpid()
    heeded = False

    def heed(*args: object) -> None:
        nonlocal heeded
        if os.getpid() != process:  # the handler came with the fork to a worker that has none of its own yet
            os._exit(0)
        if not heeded:
            heeded = True
            callback(*args)

    return heed


def _heed_one_stop(loop: asyncio.AbstractEventLoop, application: Application) -> None:
    """Let only the first signal through to the handlers that the HTTP server is about to set on its loop.

    It would forget one that comes before it serves. So they wait, blocked, until it does: it starts to as
    soon as the application runs, and the loop turns again after that.
    """
    register = loop.add_signal_handler
    heeded = False

    def add_signal_handler(number: int, callback: Callable[..., object], *args: object) -> None:
        def heed() -> None:
            nonlocal heeded
            if not heeded:
                heeded = True
                callback(*args)

        register(number, heed)

    def unblock() -> None:
        if application.is_running:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPS)
        else:
            loop.call_later(_START_CHECK_SECONDS, unblock)

    signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)
    loop.call_later(_START_CHECK_SECONDS, unblock)
    setattr(loop, "add_signal_handler", add_signal_handler)  # noqa: B010  it is a method


def _raise_descriptor_limit() -> int:
    """Let the process have as many descriptors as it may, and keep some back for files; connections left."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _CONNECTIONS_MAX + _DESCRIPTORS_KEPT_BACK
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
        soft = allowed
    return max(1, (wanted if soft == resource.RLIM_INFINITY else min(wanted, soft)) - _DESCRIPTORS_KEPT_BACK)


def granian_options(connections: int = _CONNECTIONS_MAX) -> dict[str, Any]:
    """How the HTTP server is set; the benchmark's ceiling runs on the same."""
    from granian.constants import HTTPModes, Interfaces, Loops
    from granian.http import HTTP1Settings

    return {
        "interface": Interfaces.ASGI,
        "loop": Loops.uvloop,
        "http": HTTPModes.http1,
        "websockets": False,
        "backlog": _BACKLOG,
        "backpressure": connections,
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
            remedy = (
                "PETSTORE_HOST is no address of this machine."
                if error.errno == errno.EADDRNOTAVAIL
                else "Stop what uses it, or set PETSTORE_HOST and PETSTORE_PORT."
            )
            raise Conflict(
                f"Can't listen on {settings.host}:{settings.port}: {error.strerror or error}. {remedy}"
            ) from error
