"""Remembers the last refused requests of accounts until they are saved, about once a second.

However many there are, a process remembers REFUSALS_KEPT of an account, and of at most ACCOUNTS_MAX accounts,
between two savings: 1,000 rows.
"""

from __future__ import annotations

from collections import deque

import msgspec

from petstore.core.errors import AccountSuspended, Forbidden, KeyBanned, PetstoreError, RateLimited
from petstore.core.keys import Caller
from petstore.core.limits.decision import AddressDecision, Decision
from petstore.core.refusals import REFUSALS_KEPT, Refusal
from petstore.ops.access_log import METHODS, OTHER_METHOD, Addresses

ACCOUNTS_MAX = 50

# Decision, method, template of the path, caller, peer, X-Forwarded-For.
Noted = tuple[Decision | AddressDecision, str, str | None, Caller, tuple[str, int], bytes | None]

_NOWHERE: deque[Noted] = deque(maxlen=0)


class RefusalNotes(msgspec.Struct):
    """What one process remembers; `addresses` reads clients' addresses.

    `of` has them by account. Under attack each refused request appends one, so `drain` does the rest.
    """

    addresses: Addresses
    of: dict[int, deque[Noted]] = {}

    def begin(self, account_id: int) -> deque[Noted]:
        """Make room for the refusals of an account that has none yet."""
        if len(self.of) >= ACCOUNTS_MAX:
            return _NOWHERE
        return self.of.setdefault(account_id, deque(maxlen=REFUSALS_KEPT))

    def drain(self) -> list[Refusal]:
        """The refusals since the last call, of each account the oldest first."""
        noted, self.of = self.of, {}
        return [self._read(*each) for last in noted.values() for each in last]

    def _read(
        self,
        decision: Decision | AddressDecision,
        method: str,
        path: str | None,
        caller: Caller,
        peer: tuple[str, int],
        forwarded_for: bytes | None,
    ) -> Refusal:
        error: type[PetstoreError] = Forbidden
        window = None
        if isinstance(decision, AddressDecision):  # nothing was taken
            error = AccountSuspended
        elif decision.banned:
            error = KeyBanned
        elif not decision.allowed:
            error, window = RateLimited, decision.binding.name
        return Refusal(
            caller.account_id,
            decision.now_ms,
            caller.key_id,
            METHODS.get(method, OTHER_METHOD),
            path,
            error.status,
            error.code,
            window,
            self.addresses.read(peer[0], forwarded_for or b""),
        )
