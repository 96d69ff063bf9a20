"""Requests of an account that were refused, and why its requests are refused now.

Refused: answered 429 by a limit or a ban, or 403 for a suspension or a key's level. A request without a valid
key has no account.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec

from petstore.core.accounts import Account
from petstore.core.durations import DAY_MS, SECOND_MS
from petstore.core.keys import ApiKey
from petstore.core.limits.decision import UsedWindow
from petstore.core.limits.plans import WINDOWS
from petstore.core.limits.usage import KeyBan

# What is kept of an account.
REFUSALS_KEPT = 20
# A program knows by now of a key that ended earlier.
_ENDED_LATELY_MS = DAY_MS
_KEYS_NAMED = 5


class Refusal(msgspec.Struct, frozen=True):
    """One refused request. `path` is a template, None for unknown paths; `address` as the log has it.

    `of_window` is the window whose limit refused it, None for other codes. `display` is the
    key's when the row was read.
    """

    account_id: int
    at_ms: int
    key_id: int
    method: str
    path: str | None
    status: int
    code: str
    of_window: str | None
    address: str | None
    display: str = ""


class Cause(msgspec.Struct, frozen=True):
    """Why requests are refused: `reason` since `since_ms`; so `effect` until `until_ms` (Unix times)."""

    reason: str
    effect: str
    since_ms: int | None = None
    until_ms: int | None = None


def causes_now(
    account: Account,
    keys: Collection[ApiKey],
    bans: Iterable[KeyBan],
    windows: Iterable[UsedWindow],
    now_ms: int,
    *,
    has_all_keys: bool = True,
    by: str = "",
) -> list[Cause]:
    """Why the account's requests are refused, in the order in which the gate asks.

    `keys`: all of the account, or its newest ones unless `has_all_keys`. `by`: who closed or suspended it;
    empty if unknown.
    """
    agent = f" by {by}" if by else ""
    if account.closed_at_ms is not None:
        then = "its keys are revoked, and every request is answered 401"
        return [Cause(f"Closed{agent}", then, account.closed_at_ms)]
    working = {key.id: key for key in keys if key.state(now_ms) == "active"}
    if not working and has_all_keys:
        return [_without_keys(keys)]
    if account.suspended_at_ms is not None:
        return [Cause(f"Suspended{agent}", "every request is answered 403", account.suspended_at_ms)]
    return [*_banned(bans, working), *_used_up(account, windows), *_ended(keys, now_ms)]


def _without_keys(keys: Collection[ApiKey]) -> Cause:
    if not keys:
        return Cause("It has no key yet", "every request is answered 401")
    revoked = sum(key.revoked_at_ms is not None for key in keys)
    counts = [f"{revoked} revoked"] * (revoked > 0) + [f"{len(keys) - revoked} expired"] * (
        revoked < len(keys)
    )
    then = "every request is answered 401"
    return Cause(f"No key works ({', '.join(counts)})", then, max(map(_ended_ms, keys)))


def _used_up(account: Account, windows: Iterable[UsedWindow]) -> Iterator[Cause]:
    for kind, window in zip(WINDOWS, windows, strict=True):
        if window.used >= window.limit:
            requests = f"{window.limit:,} request{'' if window.limit == 1 else 's'} {kind.precise_words}"
            yield Cause(
                f"The {requests} of the plan {account.plan.name} are used, counted",
                "every request is answered 429",
                (window.reset_at - window.seconds) * SECOND_MS,
                window.reset_at * SECOND_MS,
            )


def _banned(bans: Iterable[KeyBan], working: Mapping[int, ApiKey]) -> Iterator[Cause]:
    found = [ban for ban in bans if ban.key_id in working]
    for ban in found[:_KEYS_NAMED]:
        again = f", its ban {ban.level} in a row," if ban.level > 1 else ""
        yield Cause(
            f"Key {ban.key_id} ({ban.display}) went on after many 429 answers and is banned{again}",
            "each of its requests is answered 429",
            ban.banned_from_ms,
            ban.banned_until_ms,
        )
    if more := len(found[_KEYS_NAMED:]):
        yield Cause(f"{more:,} more of its keys are banned", "their requests are answered 429")


def _ended(keys: Iterable[ApiKey], now_ms: int) -> Iterator[Cause]:
    """Keys that ended lately: their programs may not know."""
    found = [
        key for key in keys if key.state(now_ms) != "active" and now_ms - _ended_ms(key) < _ENDED_LATELY_MS
    ]
    for key in sorted(found, key=_ended_ms, reverse=True)[:_KEYS_NAMED]:
        what = f"Key {key.id} ({key.display}) is {key.state(now_ms)}"
        yield Cause(what, "each of its requests is answered 401", _ended_ms(key))


def _ended_ms(key: ApiKey) -> int:
    """When a key that does not work ended."""
    return min(at for at in (key.revoked_at_ms, key.expires_at_ms) if at is not None)
