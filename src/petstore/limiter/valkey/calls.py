"""Calls of take.lua as bytes of the protocol, and the kinds of its replies."""

from __future__ import annotations

from petstore.core.keys import Caller
from petstore.core.limits.bans import BanPolicy
from petstore.core.limits.plans import WINDOWS
from petstore.limiter.valkey.scripts import (
    CATALOGUE,
    CATALOGUE_WRITERS,
    EPOCH,
    KEYRING,
    KEYRING_WRITERS,
    TAG,
    Script,
)

# Replies of take.lua. MOVED: the Caller was cached under another version of the keyring.
MOVED, NEEDS_RECORDS, ADMITTED, REFUSED, BANNED, BAN_BEGAN = range(6)

# The version under which a Caller was cached, and until when by the server's clock it may be used.
Cached = tuple[int, int]
NOT_CACHED = (0, 0)


class Calls:
    """Encodes calls of take.lua, whose constant parts are made once."""

    def __init__(self, script: Script, policy: BanPolicy) -> None:
        numbers = (policy.minimum_rejections, policy.window_ms, policy.grace_ms, policy.forgiven_after_ms)
        rule = " ".join(map(str, (*numbers, *policy.durations_ms))).encode("ascii")
        keys = (CATALOGUE, KEYRING, CATALOGUE_WRITERS, KEYRING_WRITERS, EPOCH)
        self._head = b"$7\r\nEVALSHA\r\n$40\r\n%b\r\n$1\r\n7\r\n" % script.digest
        self._keys = b"".join(b"$%d\r\n%b\r\n" % (len(key), key) for key in keys)
        self._numbers = b" ".join([b"%d"] * (len(WINDOWS) + 3))
        self._rule = b"$%d\r\n%b\r\n" % (len(rule), rule)

    def take(self, caller: Caller, cached: Cached, more: tuple[bytes, ...] = ()) -> bytes:
        """`more`: the script's ARGV 3 to 6, without those at the end that are not needed."""
        account = TAG + b"windows:%d" % caller.account_id
        key = TAG + b"standing:%d" % caller.key_id
        numbers = self._numbers % (*caller.limits, caller.pardoned_at_ms, *cached)
        return b"*%d\r\n%b$%d\r\n%b\r\n$%d\r\n%b\r\n%b$%d\r\n%b\r\n%b%b" % (
            12 + len(more),
            self._head,
            len(account),
            account,
            len(key),
            key,
            self._keys,
            len(numbers),
            numbers,
            self._rule,
            b"".join([b"$%d\r\n%b\r\n" % (len(part), part) for part in more]),
        )
