"""Why an account's requests are refused now, and the last ones that were. templates/refusal_parts.html shows
both on the account's page."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from petstore.console.journal import History
from petstore.console.visit import Visit
from petstore.core.accounts import Account
from petstore.core.errors import AccountSuspended, Forbidden, KeyBanned, RateLimited
from petstore.core.keys import ApiKey
from petstore.core.limits.decision import UsedWindow
from petstore.core.limits.usage import KeyBan
from petstore.core.refusals import Refusal, causes_now

_REASONS = {
    RateLimited.code: "no request left in the {}",
    KeyBanned.code: "key banned",
    AccountSuspended.code: "account suspended",
    Forbidden.code: "key's level too low",
}


async def block(
    visit: Visit,
    account: Account,
    keys: Collection[ApiKey],
    bans: Collection[KeyBan],
    windows: Collection[UsedWindow],
    history: History,
    *,
    has_all_keys: bool,
) -> dict[str, Any]:
    """The values of refusal_parts.html. `keys`: all, or the newest ones unless `has_all_keys`."""
    by = next((line.who for line in history.lines if line.entry.action in ("suspended", "closed")), "")
    return {
        "causes": causes_now(account, keys, bans, windows, visit.now_ms, has_all_keys=has_all_keys, by=by),
        "refused": [(each, _reason(each)) for each in await visit.store.refusals.last(account.id)],
    }


def _reason(refusal: Refusal) -> str:
    """The reason in words; the code itself where a later release wrote another one."""
    return _REASONS.get(refusal.code, refusal.code).format(refusal.of_window)
