"""Makes the demo in a database, from its first day to now."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from petstore.core.durations import DAY_MS
from tools.demo.place import Refused
from tools.demo.report import report
from tools.demo.shop import SteeredClock, open_shop
from tools.demo.story import Story


async def make(
    environment: Mapping[str, str], seed: int, days: int, now_ms: int, day_done: Callable[[], None]
) -> tuple[Story, str]:
    """The story as it went, with its keys, and what to print. `environment` names the database.

    Raises Refused when the database has accounts, and Failed.
    """
    clock = SteeredClock(now_ms - days * DAY_MS)
    async with open_shop(environment, clock) as shop:
        if await shop.holds_anything():
            raise Refused("The database has accounts already; name an empty one.")
        story = Story(shop, seed, days)
        await story.tell(now_ms, day_done)
        return story, await report(shop, story, environment)
