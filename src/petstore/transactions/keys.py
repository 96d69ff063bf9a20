"""Keys. A key's text never reaches the tables, only its digest."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from msgspec.structs import replace

from petstore.core.digests import digest
from petstore.core.errors import Conflict, KeyNotFound
from petstore.core.idempotency import Creation, IdempotencyKey
from petstore.core.keys import (
    Access,
    ApiKey,
    Caller,
    IssuedKey,
    KeyIssuedBefore,
    check_label,
    check_not_replaced,
    display,
    mint,
    rotated_until,
)
from petstore.core.moments import iso_moment_or_none
from petstore.core.stages import Stage
from petstore.core.values import INT64_MAX
from petstore.transactions.accounts import end_key, find_account, get_account
from petstore.transactions.idempotency import create_once
from petstore.transactions.journal import record, record_changes
from petstore.transactions.rows import ENTRY, SELECT_CALLER, SELECT_KEY, read_entry, read_key, select
from petstore.transactions.script import (
    KEYRING,
    REVOCATION,
    Repository,
    Script,
    Statement,
    read,
    reads,
    statement,
    write,
)
from petstore.transactions.stages import STAMP
from petstore.transactions.webhooks import disable_of_key

_BY_ID = statement(f"{SELECT_KEY} WHERE k.id = $1")
_LOCK = replace(_BY_ID, lock=" FOR UPDATE OF k")
_ACCOUNT_OF_KEY = statement("SELECT account_id FROM api_keys WHERE id = $1")
_BY_DIGEST = statement(f"{SELECT_KEY} WHERE k.digest = $1")
_KEYS_OF_ACCOUNT = statement(
    f"{SELECT_KEY} WHERE k.account_id = $1 AND k.id < $3 ORDER BY k.id DESC LIMIT $2"
)
_ADD_KEY = statement(
    "INSERT INTO api_keys (account_id, digest, label, display, created_at_ms, expires_at_ms, access)"
    " VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id"
)
CALLER = statement(f"{SELECT_CALLER} WHERE k.digest = $1")
_KEYS_BY_END = Statement(
    f"{SELECT_KEY} WHERE substr(k.display, -4) = ?1 ORDER BY k.id DESC LIMIT ?2",
    f"{SELECT_KEY} WHERE right(k.display, 4) = $1 ORDER BY k.id DESC LIMIT $2",
)
_ENDING_MAX = 50
# The first one: its successor lives on, where programs of 1.1.0 let a key have several.
_ROTATION = statement(
    f"SELECT {select(ENTRY)} FROM journal WHERE subject = 'key' AND subject_id = $1 AND action = 'rotated'"
    " ORDER BY id LIMIT 1"
)
_SET_EXPIRY = statement("UPDATE api_keys SET expires_at_ms = $2 WHERE id = $1")
# Later than the pardon before, also after the clock was set back: limiters compare the times.
_PARDON = statement(
    "UPDATE api_keys SET pardoned_at_ms = CASE WHEN $2 > pardoned_at_ms THEN $2 ELSE pardoned_at_ms + 1 END"
    " WHERE id = $1"
)
_BANNED_UNTIL = statement("SELECT banned_until_ms FROM key_standings WHERE key_id = $1")
_CLEAR_BANS = statement("DELETE FROM key_standings WHERE key_id = $1")


def get_key(key_id: int) -> Script[ApiKey]:
    """A key, whose row a transaction locks until its end. Raises KeyNotFound."""
    rows = yield _LOCK, (key_id,)
    if not rows:
        raise KeyNotFound(key_id)
    return read_key(rows[0])


class Keys(Repository, ABC):
    """The keys of a store.

    `reference` is an account's name or its id in digits; methods that take one raise AccountNotFound. Those
    that take a key's id raise KeyNotFound. `actor` is for the journal.
    """

    @abstractmethod
    async def find_caller(self, key_digest: bytes) -> Caller | None:
        """Implements core.keys.KeyRepository. Each database has its own way: requests wait for it."""

    @write(KEYRING, checks=True)
    def issue(
        self,
        now_ms: int,
        reference: str,
        environment: str,
        actor: str,
        *,
        label: str = "",
        expires_at_ms: int | None = None,
        access: Access = Access.WRITE,
        idempotency_key: IdempotencyKey | None = None,
    ) -> Script[IssuedKey]:
        """Raises Invalid for the label, and Conflict for a closed account.

        With an Idempotency-Key of this account it raises KeyIssuedBefore the second time: the text is not
        stored.
        """
        check_label(label)

        def create() -> Script[IssuedKey]:
            account = yield from find_account(reference)
            account.check_open()
            new = ApiKey(0, account.id, label, "", now_ms, expires_at_ms, access=access)
            return (yield from _add_key(new, environment, actor))

        return (yield from _issue_once(idempotency_key, self._clock.pinned_ms(), create))

    @read
    def of_account(
        self, reference: str, *, newest: int | None = None, before_id: int = INT64_MAX
    ) -> Script[list[ApiKey]]:
        """The keys of an account, by id; of those before the key `before_id`, at most the `newest` ones."""
        account = yield from find_account(reference)
        limit = INT64_MAX if newest is None else newest
        return [read_key(row) for row in (yield _KEYS_OF_ACCOUNT, (account.id, limit, before_id))][::-1]

    get = reads(get_key)

    @read
    def by_digest(self, key_digest: bytes) -> Script[ApiKey | None]:
        rows = yield _BY_DIGEST, (key_digest,)
        return read_key(rows[0]) if rows else None

    @read
    def ending(self, four: str) -> Script[list[ApiKey]]:
        """The newest keys whose texts end so, at most 50."""
        return [read_key(row) for row in (yield _KEYS_BY_END, (four, _ENDING_MAX))]

    @write(KEYRING)
    def rotate(
        self,
        now_ms: int,
        key_id: int,
        environment: str,
        overlap_ms: int,
        actor: str,
        idempotency_key: IdempotencyKey | None = None,
    ) -> Script[IssuedKey]:
        """A new key of the same account, label and level; the old one expires after the overlap.

        Raises Conflict when the old key is revoked, expired or was rotated before; `idempotency_key` is as
        for `issue`.
        """
        return _issue_once(
            idempotency_key,
            self._clock.pinned_ms(),
            lambda: _rotate(now_ms, key_id, environment, overlap_ms, actor),
        )

    @write(REVOCATION)
    def revoke(self, now_ms: int, key_id: int, actor: str, *, with_webhooks: bool = False) -> Script[ApiKey]:
        """The first revocation's time stays. `with_webhooks`: disable those that the key has made, too."""
        key = yield from get_key(key_id)
        if with_webhooks:
            yield from disable_of_key(now_ms, key_id, actor)
        if key.revoked_at_ms is not None:
            return key
        yield from end_key(now_ms, key_id, actor)
        return replace(key, revoked_at_ms=now_ms)

    @write(KEYRING)
    def pardon(self, now_ms: int, key_id: int, actor: str) -> Script[ApiKey]:
        """Lift a ban and clear what led to it; acts on the key's next request.

        A change also without a ban in the table: limiters may know of a newer one.
        """
        key = yield from get_key(key_id)
        rows = yield _BANNED_UNTIL, (key_id,)
        yield _PARDON, (key_id, now_ms)
        yield _CLEAR_BANS, (key_id,)
        before = {"bannedUntil": iso_moment_or_none(rows[0][0] or None) if rows else None}
        yield from record(now_ms, actor, "key", key_id, "unbanned", before, {"bannedUntil": None})
        return key


def _rotate(now_ms: int, key_id: int, environment: str, overlap_ms: int, actor: str) -> Script[IssuedKey]:
    # The account before the key, as its closing locks them: that revokes the new key too, or there is none.
    for (account_id,) in (yield _ACCOUNT_OF_KEY, (key_id,)):
        yield from get_account(account_id)
    old = yield from get_key(key_id)
    check_not_replaced(key_id, *(yield from _successor_of(key_id)), now_ms)
    ends_ms = rotated_until(old, now_ms, overlap_ms)
    yield _SET_EXPIRY, (key_id, ends_ms)
    new = replace(old, created_at_ms=now_ms, last_used_at_ms=None)
    added = yield from _add_key(new, environment, actor)
    before = {"expiresAt": iso_moment_or_none(old.expires_at_ms), "replacedBy": None}
    after = {"expiresAt": iso_moment_or_none(ends_ms), "replacedBy": added.record.id}
    yield from record_changes(now_ms, actor, "key", key_id, "rotated", before, after)
    return added


def _successor_of(key_id: int) -> Script[tuple[ApiKey | None, int]]:
    """The last of the keys that replaced this one, one after the other, and since when it does; or None."""
    successor_id, since_ms = None, 0
    while rows := (yield _ROTATION, (successor_id or key_id,)):
        entry = read_entry(rows[0])
        successor_id, since_ms = (entry.after or {})["replacedBy"], entry.at_ms
    if successor_id is None:
        return None, 0
    # Not locked: its state only chooses the words of a refusal.
    return read_key((yield _BY_ID, (successor_id,))[0]), since_ms


def _issue_once(
    idempotency_key: IdempotencyKey | None, pinned_ms: int | None, create: Callable[[], Script[IssuedKey]]
) -> Script[IssuedKey]:
    """What `create` issues. Raises KeyIssuedBefore when it was issued under the same Idempotency-Key,
    whatever the two ask for, IdempotencyKeyInUse and the errors of `create`."""
    if idempotency_key is None:
        return (yield from create())
    issued: list[IssuedKey] = []

    def create_key() -> Script[int]:
        issued.append((yield from create()))
        return issued[0].record.id

    key_id, is_replay = yield from create_once(Creation(idempotency_key, "key", b""), pinned_ms, create_key)
    if is_replay:
        raise KeyIssuedBefore(key_id)
    return issued[0]


def _add_key(new: ApiKey, environment: str, actor: str) -> Script[IssuedKey]:
    """Issue a key of which all but the id and the text is given. Raises Conflict for one that the stage of
    the data would refuse."""
    ((stamp,),) = yield STAMP, ()
    if stamp and environment != (stage := Stage(stamp)).environment:
        raise Conflict(
            f"The database is of {stage}, whose keys begin with {stage.prefix}; no key was issued. Set"
            f" PETSTORE_STAGE={stage} for this command."
        )
    secret = mint(environment)
    shown, ends_ms, now_ms = display(secret), new.expires_at_ms, new.created_at_ms
    key_digest = digest(secret.encode("ascii"))
    ((key_id,),) = yield (
        _ADD_KEY,
        (new.account_id, key_digest, new.label, shown, now_ms, ends_ms, new.access.value),
    )
    members = {
        "accountId": new.account_id,
        "label": new.label,
        "access": new.access.value,
        "expiresAt": iso_moment_or_none(ends_ms),
    }
    yield from record(now_ms, actor, "key", key_id, "issued", None, members)
    return IssuedKey(replace(new, id=key_id, display=shown), secret)
