"""Pages of keys: show, issue, rotate, revoke, lift a ban. Only one answer contains a key's text."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress

from starlette.responses import Response

from petstore.console.accounts import account_of
from petstore.console.addresses import place_in
from petstore.console.history import history_of
from petstore.console.idempotency import act_once, mark_of
from petstore.console.key_forms import TypedKey, read_key
from petstore.console.visit import ConsoleOptions, View, Visit, address
from petstore.core.accounts import Account
from petstore.core.durations import DAY_MS, format_duration, parse_duration
from petstore.core.errors import (
    Conflict,
    IdempotencyKeyInUse,
    Invalid,
    KeyIssuedBefore,
    NotFound,
)
from petstore.core.idempotency import Idempotency
from petstore.core.journal import About
from petstore.core.keys import ENVIRONMENTS, Access, ApiKey, IssuedKey
from petstore.core.limits.usage import KeyBan
from petstore.core.people import Role
from petstore.core.values import INT64_MAX, read_id
from petstore.transactions.store import Parts

_ROWS = 50
ACCESS = [
    (Access.READ.value, "read: list animals and own orders. Enough for a published site."),
    (Access.WRITE.value, "write: also add animals and place orders."),
    (Access.MANAGE.value, "manage: also change and remove everything. For the store's own programs."),
]
_DAYS_MAX = 3_650
_OVERLAP_MAX_MS = 365 * DAY_MS


class KeyPages:
    """`/keys/3` and the pages below it, `/accounts/2/keys` and `/accounts/2/keys/new`."""

    def __init__(self, store: Parts, defaults: ConsoleOptions) -> None:
        self._store = store
        self._defaults = defaults

    def views(self) -> list[View]:
        return [
            View("GET", "/accounts/{account_id}/keys", self.list_keys),
            View("GET", "/accounts/{account_id}/keys/new", self.ask_issue, Role.OPERATOR),
            View("POST", "/accounts/{account_id}/keys/new", self.issue, Role.OPERATOR),
            View("GET", "/keys/{key_id}", self.show),
            View("GET", "/keys/{key_id}/rotate", self.ask_rotation, Role.OPERATOR),
            View("POST", "/keys/{key_id}/rotate", self.rotate, Role.OPERATOR),
            View("GET", "/keys/{key_id}/revoke", self.ask_revocation, Role.OPERATOR),
            View("POST", "/keys/{key_id}/revoke", self.revoke, Role.OPERATOR),
            View("POST", "/keys/{key_id}/unban", self.unban, Role.OPERATOR),
        ]

    async def list_keys(self, visit: Visit) -> Response:
        """A page of an account's keys, newest first. With a number in the query, redirect to that key."""
        account = await account_of(visit)
        number, before_id = visit.query.get("number", "").strip(), place_in(visit.query, "before", INT64_MAX)
        try:
            if number:
                key = await _key_of(visit, account, number)
                if key is None:
                    raise NotFound(f"{account.name} has no key {number!r}. Write a key's number, such as 7.")
                return visit.redirect(f"keys/{key.id}")
            return await self._list_page(visit, account, before_id)
        except NotFound as error:
            return await self._list_page(visit, account, INT64_MAX, number, error)

    async def _list_page(
        self, visit: Visit, account: Account, before_id: int, number: str = "", error: NotFound | None = None
    ) -> Response:
        found = await self._store.keys.keys(str(account.id), newest=_ROWS + 1, before_id=before_id)
        keys = found[::-1][:_ROWS]
        here = f"accounts/{account.id}/keys"
        return visit.page(
            "keys.html",
            f"Keys of {account.name}",
            error.status if error else 200,
            account=account,
            keys=keys,
            bans=await _bans_of(visit, keys),
            number=number,
            fault=error.message if error else "",
            first=here if before_id != INT64_MAX else "",
            next=address(here, {"before": keys[-1].id}) if len(found) > _ROWS else "",
        )

    async def show(self, visit: Visit) -> Response:
        key, account = await _find(visit)
        return visit.page(
            "key.html",
            f"Key {key.id}",
            key=key,
            account=account,
            ban=(await _bans_of(visit, [key])).get(key.id),
            history=await history_of(self._store.journal, About("key", str(key.id))),
        )

    async def ask_issue(self, visit: Visit) -> Response:
        account = await account_of(visit)
        return self._issue_page(visit, account, TypedKey(environment=self._defaults.key_environment))

    async def issue(self, visit: Visit) -> Response:
        account = await account_of(visit)
        typed, wanted = read_key(visit.form, visit.now_ms)
        if wanted is None:
            return self._issue_page(visit, account, typed, 400)

        def issue(once: Idempotency) -> Awaitable[IssuedKey]:
            return self._store.keys.issue(
                str(account.id),
                wanted.environment,
                visit.actor,
                label=wanted.label,
                expires_at_ms=wanted.expires_at_ms,
                access=wanted.access,
                idempotency=once,
            )

        return await self._answer(visit, account, issue)

    async def ask_rotation(self, visit: Visit) -> Response:
        key, account = await _find(visit)
        return await self._rotation_page(visit, key, format_duration(self._defaults.overlap_ms))

    async def rotate(self, visit: Visit) -> Response:
        (key, account), overlap = await _find(visit), visit.form.get("overlap", "").strip()
        try:
            overlap_ms = _read_overlap(overlap)
        except Invalid as error:
            return await self._rotation_page(visit, key, overlap, 400, error.message)
        environment = "test" if key.display.startswith("pets_test_") else "live"

        def rotate(once: Idempotency) -> Awaitable[IssuedKey]:
            return self._store.keys.rotate(key.id, environment, overlap_ms, visit.actor, once)

        return await self._answer(visit, account, rotate, key)

    async def ask_revocation(self, visit: Visit) -> Response:
        key, account = await _find(visit)
        return visit.page("key_revoke.html", f"Revoke key {key.id}", key=key, account=account)

    async def revoke(self, visit: Visit) -> Response:
        key = await self._store.keys.revoke(visit.id_of("key"), visit.actor)
        flash = f"Key {key.id} is revoked; its next request is refused."
        return visit.redirect(f"accounts/{key.account_id}", flash=flash)

    async def unban(self, visit: Visit) -> Response:
        key = await self._store.keys.pardon(visit.id_of("key"), visit.actor)
        back = "bans" if visit.form.get("back") == "bans" else f"accounts/{key.account_id}"
        return visit.redirect(back, flash=f"Key {key.id} is not banned any more, from its next request on.")

    def _issue_page(self, visit: Visit, account: Account, typed: TypedKey, status: int = 200) -> Response:
        return visit.page(
            "key_new.html",
            f"Issue a key for {account.name}",
            status,
            account=account,
            typed=typed,
            access=ACCESS,
            environments=[(name, name) for name in ENVIRONMENTS],
            once=mark_of(visit),
        )

    async def _rotation_page(
        self, visit: Visit, key: ApiKey, overlap: str, status: int = 200, fault: str = ""
    ) -> Response:
        return visit.page(
            "key_rotate.html",
            f"Rotate key {key.id}",
            status,
            key=key,
            account=await self._store.accounts.find(str(key.account_id)),
            overlap=overlap,
            fault=fault,
            once=mark_of(visit),
        )

    async def _answer(
        self,
        visit: Visit,
        account: Account,
        issue: Callable[[Idempotency], Awaitable[IssuedKey]],
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
        old = None if rotated is None else await self._store.keys.key(rotated.id)
        title = f"Key {issued.record.id} for {account.name}"
        return visit.page("key_issued.html", title, account=account, issued=issued, old=old)


async def _key_of(visit: Visit, account: Account, number: str) -> ApiKey | None:
    """None also for a key of another account."""
    key_id = read_id(number)
    if key_id is not None:
        with suppress(NotFound):
            key = await visit.store.keys.key(key_id)
            return key if key.account_id == account.id else None
    return None


async def _bans_of(visit: Visit, keys: list[ApiKey]) -> dict[int, KeyBan]:
    bans = await visit.store.usage.bans_of([key.id for key in keys], visit.now_ms)
    return {ban.key_id: ban for ban in bans}


async def _find(visit: Visit) -> tuple[ApiKey, Account]:
    """The key in the path, and its account. Raises NotFound."""
    key = await visit.store.keys.key(visit.id_of("key"))
    return key, await visit.store.accounts.find(str(key.account_id))


def _read_overlap(text: str) -> int:
    """Milliseconds for which a rotated key still works. Raises Invalid."""
    try:
        overlap_ms = 0 if text == "0" else parse_duration(text)
    except ValueError as error:
        raise Invalid("overlap", f"{error}, or 0 for no time at all.") from None
    if overlap_ms > _OVERLAP_MAX_MS:
        raise Invalid("overlap", f"The old key goes on for {format_duration(_OVERLAP_MAX_MS)} at most.")
    return overlap_ms
