"""The page of the keys that are banned now. A ban is lifted at `/keys/3/unban`."""

from __future__ import annotations

import re

from starlette.responses import Response

from petstore.console.visit import INCOMPLETE_ADDRESS, View, Visit, address
from petstore.core.errors import InvalidParameter

_ROWS = 50
_POSITION = re.compile(r"([1-9][0-9]{0,17})-([1-9][0-9]{0,17})", re.ASCII)


async def show(visit: Visit) -> Response:
    after = visit.query.get("after", "")
    found = await visit.store.usage.bans(visit.now_ms, after=_read_position(after), limit=_ROWS + 1)
    bans = found[:_ROWS]
    next_start = f"{bans[-1].banned_until_ms}-{bans[-1].key_id}" if len(found) > _ROWS else ""
    return visit.page(
        "bans.html",
        "Bans",
        bans=bans,
        csv="bans.csv" if bans else "",
        first="bans" if after else "",
        next=address("bans", {"after": next_start}) if next_start else "",
    )


def _read_position(text: str) -> tuple[int, int]:
    """Raises InvalidParameter."""
    if not text:
        return 0, 0
    position = _POSITION.fullmatch(text)
    if position is None:
        raise InvalidParameter(INCOMPLETE_ADDRESS)
    return int(position[1]), int(position[2])


VIEWS = [View("GET", "/bans", show)]
