"""Whether a Valkey suits counters: its persistence, its rights and its clock."""

from __future__ import annotations

import asyncio
import contextlib

import libvalkey
import msgspec

from petstore.core.clock import Clock
from petstore.core.errors import Unavailable
from petstore.limiter.valkey.connection import Connection, Unreachable, connect, raise_for
from petstore.limiter.valkey.scripts import CAN_WRITE, STAGE, command
from petstore.limiter.valkey.url import usable

# Clocks set by NTP differ by far less.
AGREE_MS = 2_000
SNAPSHOTS = "snapshots"
_TIMEOUT_SECONDS = 5.0


class CountersReport(msgspec.Struct, frozen=True):
    """A Valkey as an operator sees it."""

    address: str  # host:port, or the path of a socket
    version: str
    persistence: str  # after a restart it has the counts of: "log", "snapshots", "nothing" or "unknown"
    ahead_ms: int  # how far the server's clock is ahead of this machine's
    warnings: list[str]


async def persistence(connection: Connection) -> str:
    """CountersReport.persistence; "unknown" when the server refuses CONFIG. Raises Unreachable."""
    commands = (command(b"CONFIG", b"GET", name) for name in (b"appendonly", b"save"))
    replies = await asyncio.gather(*map(connection.call, commands))
    if any(isinstance(reply, libvalkey.ReplyError) or len(reply) != 2 for reply in replies):
        return "unknown"
    if replies[0][1] != b"no":
        return "log"
    return SNAPSHOTS if replies[1][1] else "nothing"


async def inspect(url: str, clock: Clock) -> CountersReport:
    """Connect as the service does and ask. Raises Unavailable, and ConfigurationError for the URL."""
    server = usable(url)
    try:
        connection = await connect(server, CAN_WRITE, timeout_seconds=_TIMEOUT_SECONDS)
        try:
            persists = await persistence(connection)
            info = await connection.call(command(b"INFO", b"server"))
            time = await connection.call(command(b"TIME"))
            raise_for(time)
        finally:
            await connection.close()
    except Unreachable as error:
        reason = str(error).rstrip(".")
        raise Unavailable(f"Valkey at {server} can't count: {reason}. Check PETSTORE_VALKEY_URL.") from error
    ahead_ms = int(time[0]) * 1_000 + int(time[1]) // 1_000 - clock.now_ms()
    warnings = _warnings(persists, isinstance(info, libvalkey.ReplyError), ahead_ms)
    return CountersReport(str(server), _version(info), persists, ahead_ms, warnings)


async def claim(url: str, stage: str) -> str:
    """The stage that this Valkey counts for: `stage`, unless another service has claimed it for its own.

    Empty if nobody has claimed it, and if Valkey is out of reach. Raises ConfigurationError for the URL.
    """
    server = usable(url)
    with contextlib.suppress(Unreachable):
        connection = await connect(server, timeout_seconds=_TIMEOUT_SECONDS)
        try:
            if stage:
                raise_for(await connection.call(command(b"SET", STAGE, stage.encode(), b"NX")))
            found = await connection.call(command(b"GET", STAGE))
            raise_for(found)
            return (found or b"").decode()
        finally:
            await connection.close()
    return ""


def _version(info: object) -> str:
    if not isinstance(info, bytes):
        return "unknown"
    lines = dict(line.split(":", 1) for line in info.decode().splitlines() if ":" in line)
    return lines.get("valkey_version") or lines.get("redis_version") or "unknown"


def _warnings(persists: str, refuses_info: bool, ahead_ms: int) -> list[str]:
    warnings = []
    if persists == SNAPSHOTS:
        warnings.append(
            "It keeps snapshots and no log: a restart brings back older counts and may lose a second of them."
            " Set `appendonly yes`."
        )
    if refuses_info:
        warnings.append(
            "It refuses INFO, so PostgreSQL is asked for each account after every new connection."
            " Allow its user +info."
        )
    if abs(ahead_ms) > AGREE_MS:
        warnings.append(
            f"Its clock is {abs(ahead_ms) / 1_000:.1f} s {'ahead of' if ahead_ms > 0 else 'behind'} this"
            " machine's. Correct the wrong one, with NTP."
        )
    return warnings
