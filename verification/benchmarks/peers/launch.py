"""The four peers as they are started: what each serves, and its command line."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from tools.servers.ports import free_port
from verification.benchmarks import servers
from verification.benchmarks.load.closed import uses_wrk
from verification.benchmarks.peers import install

_PAGE = "/v1/pets?limit=20&status=available"
_TABLE_PAGE = "/petstore/pets.json?_shape=array&limit=20&status=available"

Command = Callable[[int, Path], list[str]]


class Peer(msgspec.Struct, frozen=True):
    """A server to compare with. `prepare` installs it and returns how to start it on a port and a database.

    `targets` has the work that it does, and by how much this service must be quicker; an empty one only shows
    it.
    """

    name: str
    prepare: Callable[[], Command]
    targets: dict[str, str]
    page: str = _PAGE
    has_keys: bool = True


def _fastapi() -> Command:
    programs = install.python("fastapi")
    application = ["--app-dir", str(install.SOURCES / "fastapi"), "app:app"]
    options = ["--loop", "uvloop", "--http", "httptools", "--no-access-log", "--log-level", "warning"]
    return lambda port, _: [str(programs / "uvicorn"), *application, *options, "--port", str(port)]


def _django() -> Command:
    programs = install.python("django")
    options = ["--worker-class", "gthread", "--threads", "4", "--no-control-socket"]
    application = ["--chdir", str(install.SOURCES / "django"), "shop.wsgi"]
    return lambda port, _: [str(programs / "gunicorn"), *options, "-b", f"127.0.0.1:{port}", *application]


def _datasette() -> Command:
    if not uses_wrk():
        raise install.Unavailable("it answers in chunks, which only wrk can read")
    programs = install.python("datasette")
    query = str(install.SOURCES / "datasette" / "datasette.json")
    command = [str(programs / "datasette"), "serve", "--metadata", query]
    return lambda port, database: [*command, "--port", str(port), str(database)]


def _fastify() -> Command:
    program = install.node("fastify") / "server.js"
    return lambda port, _: ["node", str(program)]


PEERS = (
    Peer("fastapi", _fastapi, {"list": ">= 40", "POST": ">= 20", "PATCH": "", "order": ""}),
    Peer("django", _django, {"list": "", "POST": ""}),
    Peer("datasette", _datasette, {"list": ""}, _TABLE_PAGE, has_keys=False),
    Peer("fastify", _fastify, {"list": ">= 3", "POST": ">= 2", "PATCH": "", "order": ""}),
)


@contextmanager
def running(
    peer: Peer, command: Command, source: Path, folder: Path
) -> Iterator[tuple[servers.Server, Path]]:
    """The peer on a copy of the database, in a folder of its own; the server and the copy."""
    home = folder / peer.name
    home.mkdir()
    database = home / "petstore.db"
    shutil.copyfile(source, database)
    port = free_port()
    variables = {
        "PETS_DATABASE": str(database),
        "PORT": str(port),
        "NODE_ENV": "production",
        "DJANGO_SETTINGS_MODULE": "shop.settings",
    }
    with servers.running(peer.name, command(port, database), port, home, variables=variables) as server:
        yield server, database
