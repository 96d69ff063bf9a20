"""API keys: records, their format, and the protocol of their store.

The text of a key is shown once, to its owner. The service keeps its digest.
"""

from __future__ import annotations

import re
import secrets
import zlib
from enum import StrEnum
from typing import Protocol

import msgspec

from petstore.core.durations import DAY_MS
from petstore.core.errors import Conflict, Invalid
from petstore.core.moments import iso_day

_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_RANDOM_CHARACTERS = 32  # 190 bits
_CHECKSUM_CHARACTERS = 6  # CRC-32 needs 5.4 characters of base 62
ENVIRONMENTS = ("live", "test")
KEY_PATTERN = re.compile(r"pets_(?:live|test)_[0-9A-Za-z]{38}", re.ASCII)
_BEGIN = re.compile(r"pets_(?:live|test)_[0-9A-Za-z]{5}", re.ASCII)
LABEL_MAX_CHARACTERS = 100


class Access(StrEnum):
    """The level of a key; each includes the ones before it."""

    READ = "read"
    WRITE = "write"
    MANAGE = "manage"

    def includes(self, needed: Access) -> bool:
        """Whether a key of this level may carry out an operation that takes `needed`."""
        return _RANK[self] >= _RANK[needed]

    def sufficient(self, form: str = "{}") -> str:
        """The levels that include this one, each in a form: `write or manage`."""
        *others, highest = (form.format(access) for access in Access if access.includes(self))
        return f"{', '.join(others)} or {highest}" if others else highest


_RANK = {access: rank for rank, access in enumerate(Access)}


class ApiKey(msgspec.Struct, frozen=True):
    """The record of a key. `display` is the prefix and the last four characters."""

    id: int
    account_id: int
    label: str
    display: str
    created_at_ms: int
    expires_at_ms: int | None = None
    revoked_at_ms: int | None = None
    last_used_at_ms: int | None = None
    access: Access = Access.WRITE

    def state(self, now_ms: int) -> str:
        """`active`, `expired` or `revoked`; a revocation stands even when the clock is set back before it."""
        if self.revoked_at_ms is not None:
            return "revoked"
        if self.expires_at_ms is not None and self.expires_at_ms <= now_ms:
            return "expired"
        return "active"


class Caller(msgspec.Struct, frozen=True, gc=False):
    """What the gate needs to know of a key: one row of key and account joined.

    A ban that began at or before `pardoned_at_ms` was lifted by the operator; `account` and `plan` are
    their names.
    """

    key_id: int
    account_id: int
    limits: tuple[int, ...]  # the plan's, in the order of limits.plans.WINDOWS
    expires_at_ms: int | None = None
    revoked_at_ms: int | None = None
    pardoned_at_ms: int = 0
    suspended_at_ms: int | None = None  # when the account was
    account: str = ""
    plan: str = ""
    access: Access = Access.WRITE

    @property
    def actor(self) -> str:
        """Who makes the caller's changes, for the journal."""
        return f"api:{self.account}/key {self.key_id}"


class KeyIssuedBefore(Conflict):
    """A form that issued its key before. The key's text is not kept, so it can't be shown again."""

    def __init__(self, key_id: int) -> None:
        super().__init__(
            f"Key {key_id} was issued already, and its text is shown only once."
            " If nobody has it, revoke it and issue another."
        )
        self.key_id = key_id


class IssuedKey(msgspec.Struct, frozen=True):
    """A new key's record and, this once, its text."""

    record: ApiKey
    secret: str


def _checksum(text: str) -> str:
    number = zlib.crc32(text.encode("ascii"))
    return "".join([_BASE62[number // 62**place % 62] for place in reversed(range(_CHECKSUM_CHARACTERS))])


def prefix_of(environment: str) -> str:
    """How the keys of an environment begin: `pets_live_` or `pets_test_`."""
    return f"pets_{environment}_"


def mint(environment: str) -> str:
    """A new key: its prefix, 32 random base-62 characters, 6 of CRC-32 over all before."""
    body = prefix_of(environment) + "".join(secrets.choice(_BASE62) for _ in range(_RANDOM_CHARACTERS))
    return body + _checksum(body)


def is_wellformed(text: str) -> bool:
    """Whether the text has a key's form and a right checksum: a typing error is found without a query."""
    if KEY_PATTERN.fullmatch(text) is None:
        return False
    return _checksum(text[:-_CHECKSUM_CHARACTERS]) == text[-_CHECKSUM_CHARACTERS:]


def holds_key(text: str) -> bool:
    """Whether there is a key in the text, or the beginning of one."""
    return _BEGIN.search(text) is not None


def display(secret: str) -> str:
    """The prefix and the last four characters: enough to recognise a key, useless to present."""
    prefix = secret[: secret.rindex("_") + 1]
    return f"{prefix}…{secret[-4:]}"


def check_label(label: str) -> None:
    """Raise Invalid unless `label` is printable and at most 100 characters."""
    if len(label) > LABEL_MAX_CHARACTERS or not (label.isprintable() or label == ""):
        raise Invalid("label", f"A label is at most {LABEL_MAX_CHARACTERS} printable characters.")


def rotated_until(old: ApiKey, now_ms: int, overlap_ms: int) -> int:
    """The new expiry of a key with a successor, in Unix ms: after the overlap, or its own expiry if earlier.

    Raises Conflict unless the key is active.
    """
    if old.state(now_ms) != "active":
        raise Conflict(f"Key {old.id} is {old.state(now_ms)}; issue a new key instead.")
    ends_ms = now_ms + overlap_ms
    return ends_ms if old.expires_at_ms is None else min(old.expires_at_ms, ends_ms)


def check_not_replaced(key_id: int, successor: ApiKey | None, replaced_at_ms: int, now_ms: int) -> None:
    """Raise Conflict for a key that was rotated before: its end would then depend on a second
    successor, and nobody would know of both."""
    if successor is None:
        return
    state = successor.state(now_ms)
    replaced = f"Key {key_id} was replaced by key {successor.id} on {iso_day(replaced_at_ms // DAY_MS)}"
    if state == "active":
        raise Conflict(f"{replaced}; rotate that one, or issue a new key.")
    raise Conflict(f"{replaced}, which is {state}; issue a new key.")


class KeyRepository(Protocol):
    """Keys as the gate reads them."""

    async def find_caller(self, key_digest: bytes) -> Caller | None:
        """The caller behind a key's digest, expired and revoked ones included. Raises StoreUnavailable."""
