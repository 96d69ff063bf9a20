"""The operation on an account's usage: getUsage."""

from __future__ import annotations

import msgspec

from petstore.api.pipeline.request import Request
from petstore.api.pipeline.response import Response, make_representation
from petstore.core.durations import DAY_MS, SECOND_MS
from petstore.core.keys import Caller
from petstore.core.limits.decision import Decision, Window
from petstore.core.limits.plans import limit_members
from petstore.core.limits.usage import every_day
from petstore.core.moments import iso_day, iso_moment, iso_moment_or_none
from petstore.core.preconditions import encode
from petstore.transactions.usage import Usage

DAYS = 90


class UsageOperations(msgspec.Struct, kw_only=True):
    """One handler for each operationId."""

    usage: Usage

    async def get_usage(self, request: Request, caller: Caller) -> Response:
        """GET /usage: the windows are as this very request found them, so they agree with its headers. It was
        admitted: `used` is the limit minus what remains.
        """
        decision = request.decision
        assert isinstance(decision, Decision)
        windows, now_ms = decision.windows, decision.now_ms
        used_today = windows[-1].limit - windows[-1].remaining
        counted = await self.usage.days(now_ms, caller.account_id, days=DAYS)
        document = {
            "account": caller.account,
            "plan": caller.plan,
            **limit_members(caller.limits),
            **{window.name: _use(window) for window in windows},
            "key": {
                "access": caller.access,
                "expiresAt": iso_moment_or_none(caller.expires_at_ms),
                "bannedUntil": None,  # a banned key is refused before it comes here
            },
            "days": [
                {
                    "date": iso_day(counts.day),
                    "requests": counts.requests,
                    "refused": counts.refused,
                    "deprecated": counts.deprecated,
                }
                for counts in every_day(counted, now_ms // DAY_MS, DAYS, used_today)
            ],
        }
        return make_representation(encode(document))


def _use(window: Window) -> dict[str, object]:
    return {"used": window.limit - window.remaining, "resetAt": iso_moment(window.reset_at * SECOND_MS)}
