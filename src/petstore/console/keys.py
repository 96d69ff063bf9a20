"""Pages of keys: show, issue, rotate, revoke, lift a ban. Only one answer contains a key's text."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from zoneinfo import ZoneInfo

from starlette.responses import Response

from petstore.console.accounts import account_of
from petstore.console.formats import choose, ungrouped
from petstore.console.idempotency import act_once, mark_of
from petstore.console.journal import history_of
from petstore.console.lists import RowPage, links
from petstore.console.rows import KEYS
from petstore.console.several import ROWS_MAX
from petstore.console.times import read_typed_day
from petstore.console.visit import Faults, View, Visit, asks_again
from petstore.core.accounts import Account
from petstore.core.durations import DAY_MS, format_duration, parse_duration
from petstore.core.errors import Conflict, IdempotencyKeyInUse, Invalid, NotFound
from petstore.core.idempotency import IdempotencyKey
from petstore.core.keys import Access, ApiKey, IssuedKey, KeyIssuedBefore, check_label, prefix_of
from petstore.core.limits.usage import KeyBan
from petstore.core.people import Role
from petstore.core.values import INT64_MAX, read_id
from petstore.core.zones import day_at, day_begins_ms

ACCESS = [
    (Access.READ.value, "read: list animals and own orders. Enough for a published site."),
    (Access.WRITE.value, "write: also add animals and place orders."),
    (Access.MANAGE.value, "manage: also change and remove everything. For the store's own programs."),
]
_DAYS_MAX = 3_650
_OVERLAP_MAX_MS = 365 * DAY_MS


async def list_keys(visit: Visit) -> Response:
    """A page of an account's keys, newest first. With a number in the query, redirect to that key."""
    account, number = await account_of(visit), visit.asked("number")["number"]
    before_id = visit.query_id("before", INT64_MAX)
    if number:
        key = await _key_of(visit, account, number)
        if key is not None:
            return visit.redirect(f"keys/{key.id}")
        before_id = INT64_MAX
        text = f"{account.name} has no key {number!r}. Write a key's number, such as 7."
        visit.refuse(NotFound(text), "number")
    found = await visit.store.keys.of_account(str(account.id), newest=ROWS_MAX + 1, before_id=before_id)
    keys = found[::-1][:ROWS_MAX]
    listed = RowPage(keys, before_id == INT64_MAX, next_start=keys[-1].id if len(found) > ROWS_MAX else 0)
    return visit.page(
        "keys.html",
        f"Keys of {account.name}",
        account=account,
        keys=keys,
        bans=await _bans_of(visit, keys),
        number=number,
        several=KEYS,
        **links(f"accounts/{account.id}/keys", {}, listed, "before"),
    )


async def _key_of(visit: Visit, account: Account, number: str) -> ApiKey | None:
    """A key of the account; None also for another account's."""
    key_id = read_id(number)
    if key_id is not None:
        with suppress(NotFound):
            key = await visit.store.keys.get(key_id)
            return key if key.account_id == account.id else None
    return None


async def _bans_of(visit: Visit, keys: list[ApiKey]) -> dict[int, KeyBan]:
    bans = await visit.store.usage.bans_of(visit.now_ms, [key.id for key in keys])
    return {ban.key_id: ban for ban in bans}


async def show(visit: Visit) -> Response:
    key, account = await _find(visit)
    return visit.page(
        "key.html",
        f"Key {key.id} · {account.name}",
        key=key,
        account=account,
        ban=(await _bans_of(visit, [key])).get(key.id),
        history=await history_of(visit, "key", key.id),
    )


async def _find(visit: Visit) -> tuple[ApiKey, Account]:
    """The key in the path, and its account. Raises NotFound."""
    key = await visit.store.keys.get(visit.id_of("key"))
    return key, await visit.store.accounts.get(key.account_id)


async def ask_issue(visit: Visit) -> Response:
    account = await account_of(visit)
    return visit.page(
        "key_new.html",
        f"Issue a key for {account.name}",
        account=account,
        typed=_typed(visit),
        access=ACCESS,
        environments=[(name, name) for name in visit.desk.options.environments],
        once=mark_of(visit),
    )


def _typed(visit: Visit) -> dict[str, str]:
    environment = visit.desk.options.environments[0]
    return visit.sent(label="", access=Access.WRITE.value, environment=environment, days="", until="")


@asks_again(ask_issue, Faults)
async def issue(visit: Visit) -> Response:
    account, typed = await account_of(visit), _typed(visit)
    expires_at_ms = _read_key(visit, typed)
    return await _answer(
        visit,
        account,
        lambda once: visit.store.keys.issue(
            str(account.id),
            typed["environment"],
            visit.actor,
            label=typed["label"],
            expires_at_ms=expires_at_ms,
            access=Access(typed["access"]),
            idempotency_key=once,
        ),
    )


def _read_key(visit: Visit, typed: Mapping[str, str]) -> int | None:
    """The expiry in Unix milliseconds; None for a key that works until it is revoked. Raises Faults."""
    faults, expires_at_ms, environments = {}, None, visit.desk.options.environments
    try:
        check_label(typed["label"])
    except Invalid as error:
        faults["label"] = error.message
    if typed["access"] not in list(Access):
        faults["access"] = choose(Access)
    if typed["environment"] not in environments:
        faults["environment"] = choose(environments)
    try:
        expires_at_ms = _read_expiry(typed["days"], typed["until"], visit.now_ms, visit.zone)
    except Invalid as error:
        faults[error.field] = error.message
    if faults:
        raise Faults(faults)
    return expires_at_ms


def _read_expiry(days: str, until: str, now_ms: int, zone: ZoneInfo) -> int | None:
    """Raises Invalid."""
    if days and until:
        raise Invalid("until", "Give either a number of days or a last day, not both.")
    if days:
        count = read_id(ungrouped(days))
        if count is None or count > _DAYS_MAX:
            raise Invalid("days", f"Write a whole number from 1 to {_DAYS_MAX:,}.")
        return now_ms + count * DAY_MS
    if not until:
        return None
    last, today = read_typed_day("until", until), day_at(now_ms, zone)
    if not today <= last <= today + _DAYS_MAX:
        raise Invalid("until", f"Choose today or a day within {_DAYS_MAX // 365} years.")
    return day_begins_ms(last + 1, zone)


async def ask_rotation(visit: Visit) -> Response:
    key, account = await _find(visit)
    overlap = format_duration(visit.desk.options.overlap_ms)
    return visit.page(
        "key_rotate.html",
        f"Rotate key {key.id}",
        key=key,
        account=account,
        overlap=visit.sent(overlap=overlap)["overlap"],
        once=mark_of(visit),
    )


@asks_again(ask_rotation, Invalid)
async def rotate(visit: Visit) -> Response:
    key, account = await _find(visit)
    overlap_ms = _read_overlap(visit.typed("overlap"))
    own, *others = visit.desk.options.environments
    environment = next((each for each in others if key.display.startswith(prefix_of(each))), own)
    keys, actor = visit.store.keys, visit.actor
    return await _answer(
        visit, account, lambda once: keys.rotate(key.id, environment, overlap_ms, actor, once), key
    )


def _read_overlap(text: str) -> int:
    """Milliseconds for which a rotated key still works. Raises Invalid."""
    try:
        overlap_ms = 0 if text == "0" else parse_duration(text)
    except ValueError as error:
        raise Invalid("overlap", f"{error}, or 0 for no time at all.") from None
    if overlap_ms > _OVERLAP_MAX_MS:
        raise Invalid("overlap", f"The old key goes on for {format_duration(_OVERLAP_MAX_MS)} at most.")
    return overlap_ms


async def ask_revocation(visit: Visit) -> Response:
    key, account = await _find(visit)
    webhooks = await visit.store.webhooks.of_key(key.id)
    return visit.page("key_revoke.html", f"Revoke key {key.id}", key=key, account=account, webhooks=webhooks)


async def revoke(visit: Visit) -> Response:
    with_webhooks = visit.form.get("with_webhooks") == "on"
    key = await visit.store.keys.revoke(visit.id_of("key"), visit.actor, with_webhooks=with_webhooks)
    flash = f"Key {key.id} is revoked; its next request is refused."
    if with_webhooks:
        flash += " The webhooks that it has made are disabled."
    return visit.redirect(f"accounts/{key.account_id}", flash=flash)


async def unban(visit: Visit) -> Response:
    key = await visit.store.keys.pardon(visit.id_of("key"), visit.actor)
    back = "bans" if visit.form.get("back") == "bans" else f"accounts/{key.account_id}"
    return visit.redirect(back, flash=f"Key {key.id} is not banned any more, from its next request on.")


async def _answer(
    visit: Visit,
    account: Account,
    issue: Callable[[IdempotencyKey], Awaitable[IssuedKey]],
    rotated: ApiKey | None = None,
) -> Response:
    """The only page with a key's text. A form that is sent again gets a page without it."""
    try:
        issued = await act_once(visit, account.id, issue)
    except (Conflict, IdempotencyKeyInUse) as error:
        before = error.key_id if isinstance(error, KeyIssuedBefore) else None
        title = "No key was issued" if before is None else f"Key {before} was issued already"
        return visit.page(
            "key_not_issued.html", title, 409, account=account, fault=error.message, issued_before=before
        )
    old = None if rotated is None else await visit.store.keys.get(rotated.id)
    title = f"Key {issued.record.id} for {account.name}"
    return visit.page("key_issued.html", title, account=account, issued=issued, old=old)


VIEWS = [
    View("GET", "/accounts/{account_id}/keys", list_keys),
    View("GET", "/accounts/{account_id}/keys/new", ask_issue, Role.OPERATOR),
    View("POST", "/accounts/{account_id}/keys/new", issue, Role.OPERATOR, shows_once=True),
    View("GET", "/keys/{key_id}", show),
    View("GET", "/keys/{key_id}/rotate", ask_rotation, Role.OPERATOR),
    View("POST", "/keys/{key_id}/rotate", rotate, Role.OPERATOR, shows_once=True),
    View("GET", "/keys/{key_id}/revoke", ask_revocation, Role.OPERATOR),
    View("POST", "/keys/{key_id}/revoke", revoke, Role.OPERATOR),
    View("POST", "/keys/{key_id}/unban", unban, Role.OPERATOR),
]
