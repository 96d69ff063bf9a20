"""Forms that act once, however often they are sent: by a double click, a reload or the way back.

Each has a mark, under which the store keeps for 24 hours what the form has made. The mark has its time: a
form that is older than what the store remembers makes nothing.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Awaitable, Callable
from typing import TypeVar

from petstore.console.visit import CUT_FORM, Visit
from petstore.core.durations import HOUR_MS
from petstore.core.errors import Conflict, IdempotencyKeyInUse, IdempotencyKeyReused, InvalidBody
from petstore.core.idempotency import KEPT_MS, Idempotency

_T = TypeVar("_T")
_FIELD = "once"
_RANDOM_BYTES = 16
_MARK = re.compile(r"([0-9]{13})\.[A-Za-z0-9_-]{22}", re.ASCII)
_AGE_MAX_MS = KEPT_MS - HOUR_MS
# A second click waits for what the first one makes.
_TRIES = 20
_PAUSE_SECONDS = 0.1


class FormUsedUp(Conflict):
    """The form has made something else before, or is so old that nobody knows. It makes nothing."""


def mark_of(visit: Visit, *, used_up: bool = False) -> str:
    """For the hidden field `once`: the mark of the form that was sent and is shown again, else a new one."""
    sent = "" if used_up else visit.form.get(_FIELD, "")
    return sent or f"{visit.now_ms}.{secrets.token_urlsafe(_RANDOM_BYTES)}"


async def act_once(visit: Visit, account_id: int, act: Callable[[Idempotency], Awaitable[_T]]) -> _T:
    """What `act` makes for an account, or for none (FORMS), under the mark of the form that was sent.

    Raises InvalidBody for a form that no page had, FormUsedUp, IdempotencyKeyInUse when the first click still
    works after two seconds, and what `act` raises.
    """
    mark = _MARK.fullmatch(visit.form.get(_FIELD, ""))
    if mark is None:
        raise InvalidBody(CUT_FORM)
    if visit.now_ms - int(mark[1]) > _AGE_MAX_MS:
        raise FormUsedUp("This form is old. Look whether it was carried out; if not, fill it in once more.")
    for _ in range(_TRIES):
        try:
            return await act(Idempotency(account_id, mark[0]))
        except IdempotencyKeyInUse:
            await asyncio.sleep(_PAUSE_SECONDS)
        except IdempotencyKeyReused:
            raise FormUsedUp(
                "This form was carried out before, with other values."
                " To go on with these too, send it once more."
            ) from None
    raise IdempotencyKeyInUse(
        "This form is still being carried out. Look at what it has made before you go on."
    )
