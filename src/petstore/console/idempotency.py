"""Forms that act once, however often they are sent: by a double click, a reload or the back button.

Each form has a mark, which serves as an Idempotency-Key: the store keeps for 24 hours what it created. A
form whose mark is older than 23 hours creates nothing.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Awaitable, Callable
from typing import TypeVar

from petstore.console.visit import INCOMPLETE_FORM, Visit
from petstore.core.durations import HOUR_MS
from petstore.core.errors import Conflict, IdempotencyKeyInUse, IdempotencyKeyReused, InvalidBody
from petstore.core.idempotency import KEPT_MS, IdempotencyKey

_T = TypeVar("_T")
# Stands for the account where a form creates something that belongs to none, such as an animal.
NO_ACCOUNT = 0
_FIELD = "once"
_RANDOM_BYTES = 16
_MARK = re.compile(r"([0-9]{1,13})\.[A-Za-z0-9_-]{22}", re.ASCII)
_AGE_MAX_MS = KEPT_MS - HOUR_MS
# A second click waits for the result of the first one.
_TRIES = 20
_PAUSE_SECONDS = 0.1


class FormUsedUp(Conflict):
    """The form created something else earlier, or has expired. It creates nothing."""


def mark_of(visit: Visit) -> str:
    """The mark for the hidden field `once`: the sent form's when it is shown again, unless that is used up,
    else a new one."""
    sent = "" if isinstance(visit.error, FormUsedUp) else visit.form.get(_FIELD, "")
    return sent or f"{visit.now_ms}.{secrets.token_urlsafe(_RANDOM_BYTES)}"


async def act_once(visit: Visit, account_id: int, act: Callable[[IdempotencyKey], Awaitable[_T]]) -> _T:
    """Call `act` with the mark of the sent form as its Idempotency-Key; returns what `act` created.

    `account_id` may be NO_ACCOUNT. Raises InvalidBody for a form without a mark, FormUsedUp,
    IdempotencyKeyInUse when the first click is still at work after two seconds, and what `act` raises.
    """
    mark = _MARK.fullmatch(visit.form.get(_FIELD, ""))
    if mark is None:
        raise InvalidBody(INCOMPLETE_FORM)
    if visit.now_ms - int(mark[1]) > _AGE_MAX_MS:
        raise FormUsedUp(
            "This form has expired. Check whether the change was saved; if not, fill in a new form."
        )
    for _ in range(_TRIES):
        try:
            return await act(IdempotencyKey(account_id, mark[0]))
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
