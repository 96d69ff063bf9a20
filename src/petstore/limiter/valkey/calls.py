"""Calls of take.lua as bytes of the protocol, and the kinds of its replies."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

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

# Replies of take.lua. MOVED: the Caller was cached under another version of the keyring. TOO_MANY: not all of
# several requests can be admitted.
MOVED, NEEDS_RECORDS, ADMITTED, REFUSED, BANNED, BAN_BEGAN, TOO_MANY = range(7)

# The version under which a Caller was cached, and until when by the server's clock it may be used.
Cached = tuple[int, int]
NOT_CACHED = (0, 0)


# Who asks: a Caller, how it was cached, and for how many requests.
Asker = tuple[Caller, Cached, int]


class Calls:
    """Encodes calls of take.lua, whose constant parts are made once."""

    def __init__(self, script: Script, policy: BanPolicy) -> None:
        numbers = (policy.strikes_allowed, policy.window_ms, policy.grace_ms, policy.forgiven_after_ms)
        rule = " ".join(map(str, (*numbers, *policy.durations_ms))).encode("ascii")
        keys = (CATALOGUE, KEYRING, CATALOGUE_WRITERS, KEYRING_WRITERS, EPOCH)
        self._head = b"$7\r\nEVALSHA\r\n$40\r\n%b\r\n" % script.digest
        self._keys = b"".join(b"$%d\r\n%b\r\n" % (len(key), key) for key in keys)
        self._numbers = b" ".join([b"%d"] * (len(WINDOWS) + 4))
        self._rule = b"$%d\r\n%b\r\n" % (len(rule), rule)

    def take(self, caller: Caller, cached: Cached, more: tuple[bytes, ...] = (), requests: int = 1) -> bytes:
        """Requests of a key. `more`: ARGV 3 to 6 of the script, as many as it needs."""
        return self.take_all([(caller, cached, requests)], more)

    def take_all(self, askers: Sequence[Asker], more: tuple[bytes, ...] = ()) -> bytes:
        """The requests of several keys; `more` for a single one."""
        keys, arguments = b"%d" % (5 + 2 * len(askers)), [self._rule]
        parts = [
            b"*%d\r\n%b$%d\r\n%b\r\n" % (9 + 3 * len(askers) + len(more), self._head, len(keys), keys),
            self._keys,
        ]
        for caller, cached, requests in askers:
            parts.append(_records(caller.account_id, caller.key_id))
            numbers = self._numbers % (*caller.limits, caller.pardoned_at_ms, *cached, requests)
            arguments.append(b"$%d\r\n%b\r\n" % (len(numbers), numbers))
        arguments += [b"$%d\r\n%b\r\n" % (len(part), part) for part in more]
        return b"".join([*parts, *arguments])


@lru_cache(maxsize=4_096)
def _records(account_id: int, key_id: int) -> bytes:
    """The KEYS of an account's windows and of a key's BanState, which is named like its table."""
    account, key = TAG + b"windows:%d" % account_id, TAG + b"standing:%d" % key_id
    return b"$%d\r\n%b\r\n$%d\r\n%b\r\n" % (len(account), account, len(key), key)
