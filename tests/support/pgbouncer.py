"""Real PgBouncers before the tests' PostgreSQL, one for each way to set it. Absent: skip, or fail in CI."""

from __future__ import annotations

import atexit
from pathlib import Path

import asyncpg

from tests.support.machine import program, short_folder
from tests.support.postgres import by_way_of, listening_address, run, shared_url
from tools.servers.child import Child
from tools.servers.find import as_nobody
from tools.servers.ports import free_port

# So few that many clients' transactions have to take turns on one server connection; a session keeps its own.
SESSIONS = 30
_POOL = {"transaction": 3, "session": SESSIONS}
_IGNORING = "ignore_startup_parameters = statement_timeout,idle_in_transaction_session_timeout\n"
_IN_TURNS = "server_round_robin = 1\n"

_started: dict[tuple[str, str], int] = {}


def pooled(url: str, mode: str = "transaction", *, ignoring: bool = False, in_turns: bool = False) -> str:
    """The URL of the database through PgBouncer, which is started at the first call.

    One that is `ignoring` accepts the timeouts that a client asks for, and forgets them. One that goes
    `in_turns` uses the server connection that has rested longest, and not the one that was used last.
    """
    more = (_IGNORING if ignoring else "") + (_IN_TURNS if in_turns else "")
    if (mode, more) not in _started:
        _started[mode, more] = _start(mode, more)
    return by_way_of(url, _started[mode, more])


def _start(mode: str, more: str) -> int:
    found = program("pgbouncer")
    folder, port = short_folder("pb"), free_port()
    place = listening_address(shared_url())
    where = (
        f"host={place.parent} port={place.suffix[1:]}"
        if isinstance(place, Path)
        else f"host={place[0]} port={place[1]}"
    )
    (folder / "users").write_text('"petstore" ""\n')
    (folder / "pgbouncer.ini").write_text(
        f"[databases]\n* = {where}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n"
        f"unix_socket_dir =\nauth_type = trust\nauth_file = {folder}/users\npool_mode = {mode}\n"
        f"default_pool_size = {_POOL[mode]}\nmax_client_conn = 500\n{more}"
    )
    child = Child("PgBouncer", [found, folder / "pgbouncer.ini"], folder / "log", **as_nobody())
    child.start()
    atexit.register(child.kill)

    def answers() -> bool:
        try:
            run(by_way_of(shared_url(), port), "SELECT 1")
        except (OSError, asyncpg.PostgresError):
            return False
        return True

    child.wait_until(answers)
    return port
