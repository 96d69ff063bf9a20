"""The page of the keys that are banned now."""

from __future__ import annotations

import re

from starlette.responses import Response

from petstore.console.visit import INCOMPLETE_ADDRESS, View, Visit, address
from petstore.core.errors import InvalidParameter
from petstore.core.limits.usage import BannedKey
from petstore.transactions.usage import Usage

_ROWS = 50
_PLACE = re.compile(r"([1-9][0-9]{0,17})-([1-9][0-9]{0,17})", re.ASCII)


class BanPages:
    """`/bans`. A ban is lifted at `/keys/3/unban`."""

    def __init__(self, usage: Usage) -> None:
        self._usage = usage

    def views(self) -> list[View]:
        return [View("GET", "/bans", self.show)]

    async def show(self, visit: Visit) -> Response:
        after = visit.query.get("after", "")
        found = await self._usage.bans(visit.now_ms, after=_read_place(after), limit=_ROWS + 1)
        bans = found[:_ROWS]
        return visit.page(
            "bans.html",
            "Bans",
            bans=bans,
            first="bans" if after else "",
            next=address("bans", {"after": _place_of(bans[-1])}) if len(found) > _ROWS else "",
        )


def _place_of(ban: BannedKey) -> str:
    return f"{ban.banned_until_ms}-{ban.key_id}"


def _read_place(text: str) -> tuple[int, int]:
    """Raises InvalidParameter."""
    if not text:
        return 0, 0
    place = _PLACE.fullmatch(text)
    if place is None:
        raise InvalidParameter(INCOMPLETE_ADDRESS)
    return int(place[1]), int(place[2])
