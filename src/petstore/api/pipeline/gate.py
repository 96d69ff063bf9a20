"""The gate before every operation: from the bearer token to the caller and the Decision.

Only OPTIONS of a path that exists passes around it, in app.py. A request without a valid key has no account:
it is taken from the limit of the client's address.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from petstore.api.pipeline.request import Request
from petstore.core.client_address import Networks
from petstore.core.clock import Clock
from petstore.core.errors import (
    AccountSuspended,
    Forbidden,
    KeyBanned,
    PetstoreError,
    RateLimited,
    Unauthorized,
)
from petstore.core.keys import Access, Caller, KeyRepository, is_wellformed
from petstore.core.limits.counters import Limiter, OnDecision
from petstore.core.limits.decision import AddressDecision, Decision
from petstore.core.limits.usage import UsageMeter
from petstore.core.stages import Foreign
from petstore.core.versions import Version

_CACHED_CALLERS_MAX = 100_000
_READ = Access.READ  # faster than the attribute

_NO_VALID_KEY_MESSAGE = "The API key is missing or invalid; send it as 'Authorization: Bearer <API_KEY>'."
# For keys that exist: their holders may know the reason.
_MESSAGES_BY_CAUSE = {
    "revoked": "This API key was revoked; use another one.",
    "expired": "This API key has expired; use its successor or ask for a new one.",
}


class AddressQuota(Protocol):
    """Failed authentications by client address."""

    def charge(self, address: str) -> AddressDecision: ...

    def peek(self, address: str) -> AddressDecision: ...


@dataclass(eq=False)
class Refused(Exception):
    """A request that was not admitted: the error for the client, and the facts for headers and the log."""

    error: PetstoreError
    decision: Decision | AddressDecision
    caller: Caller | None = None  # None for an unknown key
    # missing, malformed, foreign, unknown, expired, revoked or suspended; None where a limit or the level
    # refused
    cause: str | None = None


class Gate:
    """Admits requests or refuses them; caches callers until the version of the keyring changes. It is used on
    the event loop alone, and compares versions anew after each await.

    The order of calls: `try_admit`; if False `take_later`, whose callback calls `apply_decision`; if that is
    False too, or its Decision is None, `admit`.

    `trusted_proxies` are believed about their clients' addresses; `foreign` keys are refused without a query.
    """

    def __init__(
        self,
        *,
        keys: KeyRepository,
        limiter: Limiter,
        addresses: AddressQuota,
        meter: UsageMeter,
        clock: Clock,
        trusted_proxies: Networks = (),
        foreign: Foreign | None = None,
    ) -> None:
        self._keys = keys
        self._limiter = limiter
        self._addresses = addresses
        self._meter = meter
        self._clock = clock
        self._trusted = trusted_proxies
        self._foreign = foreign
        self._messages = {**_MESSAGES_BY_CAUSE, "foreign": foreign.message} if foreign else _MESSAGES_BY_CAUSE
        self._cached: dict[bytes, Caller] = {}
        self._cached_version: Version | None = None
        self.key_reads = 0

    @property
    def cached_keys(self) -> int:
        return len(self._cached)

    def try_admit(self, request: Request, needed: Access, deprecated: bool) -> bool:
        """Admit a request without waiting: set its key's caller and the Decision, which costs one request.
        Returns False if that takes the store or Valkey.

        Raises Refused with Unauthorized, AccountSuspended, RateLimited, KeyBanned or Forbidden, which costs
        one too. Unknown paths and methods need `read`, which every key has: their 404 and 405 come before
        Forbidden.
        """
        token = request.head.token
        if token is None:
            cause = "missing" if request.headers.get(b"authorization") is None else "malformed"
            raise self._unauthorized(request, cause)
        # Keys are found by their hash, so that the time of the answer does not show how close a guess was.
        caller = self._cached.get(request.head.key_digest)
        if caller is None:
            if not (token.isascii() and is_wellformed(token.decode("ascii"))):
                raise self._unauthorized(request, "malformed")
            if self._foreign is not None and token.startswith(self._foreign.prefix):
                raise self._unauthorized(request, "foreign")
            return False
        # An expired key is read again, so that its refusal is never outdated.
        if caller.expires_at_ms is not None and caller.expires_at_ms <= self._clock.now_ms():
            return False
        decision = self._limiter.try_take(caller, self._cached_version)
        if decision is None:
            return False
        self.apply_decision(request, caller, decision, needed, deprecated)
        return True

    def take_later(self, request: Request, callback: OnDecision) -> bool:
        """After `try_admit`, without a task: `callback` gets the Decision, or None."""
        caller = self._known(request)
        return caller is not None and self._limiter.take_later(caller, self._cached_version, callback)

    async def admit(self, request: Request, needed: Access, deprecated: bool) -> None:
        """After `try_admit`, and like it. Raises StoreUnavailable from the store too."""
        caller, decision = self._known(request), None
        if caller is not None:
            version = self._cached_version
            decision = await self._limiter.take(caller, version)
            if decision is None and version == self._cached_version:  # a key has changed: all may be outdated
                self._cached.clear()
        if caller is None or decision is None:
            caller, decision = await self._take_afresh(request)
        self.apply_decision(request, caller, decision, needed, deprecated)

    async def admit_again(self, request: Request) -> None:
        """Set, after a wait, the Decision of this moment, which costs nothing. Raises Refused for a key that
        has ended since, or is banned."""
        caller, decision = self._known(request), None
        if caller is not None:
            decision = await self._limiter.peek(caller, self._cached_version)
        if caller is None or decision is None:
            caller = await self._find(request)
            decision = await self._limiter.peek(caller)
            assert decision is not None  # None only answers an outdated version
        request.caller, request.decision = caller, decision
        if not decision.allowed:
            raise Refused(limit_error(decision), decision, caller)

    def _known(self, request: Request) -> Caller | None:
        """The cached Caller, unless the key has expired."""
        caller = self._cached.get(request.head.key_digest)
        if caller is None or caller.expires_at_ms is None or caller.expires_at_ms > self._clock.now_ms():
            return caller
        return None

    def apply_decision(
        self, request: Request, caller: Caller, decision: Decision, needed: Access, deprecated: bool
    ) -> None:
        """Count the request, and set its caller and Decision. Raises Refused."""
        self._meter.count(caller.account_id, caller.key_id, decision.now_ms, decision.allowed, deprecated)
        if not decision.allowed:
            raise Refused(limit_error(decision), decision, caller)
        if needed is not _READ and not caller.access.includes(needed):
            error = Forbidden(
                f"This operation needs a key of level {needed}; this key has {caller.access}."
                " Ask the operator for one."
            )
            raise Refused(error, decision, caller)
        request.caller, request.decision = caller, decision

    def describe(self, request: Request) -> AddressDecision:
        """The client address's window, for an answer without a Decision of an account."""
        return self._addresses.peek(request.client_address(self._trusted))

    async def _take_afresh(self, request: Request) -> tuple[Caller, Decision]:
        """Read the caller from the store, take one, and cache the caller unless a key has changed since."""
        version = self._limiter.keyring_version()
        caller = await self._find(request)
        decision = await self._limiter.take(caller)
        assert decision is not None  # None only answers an outdated version
        if version is not None and version == decision.versions.keyring:
            self._cache(version, request.head.key_digest, caller)
        return caller, decision

    async def _find(self, request: Request) -> Caller:
        """Read the caller from the store. Raises Refused."""
        self.key_reads += 1
        caller = await self._keys.find_caller(request.head.key_digest)
        if caller is None:
            raise self._unauthorized(request, "unknown")
        # Only here, after the digest matched, does the answer depend on revocation and expiry.
        if caller.revoked_at_ms is not None:
            raise self._unauthorized(request, "revoked", caller)
        if caller.expires_at_ms is not None and caller.expires_at_ms <= self._clock.now_ms():
            raise self._unauthorized(request, "expired", caller)
        if caller.suspended_at_ms is not None:
            error = AccountSuspended(
                "The account of this API key is suspended; ask the operator to resume it."
            )
            raise Refused(error, self.describe(request), caller, "suspended")
        return caller

    def _cache(self, version: Version, key_digest: bytes, caller: Caller) -> None:
        """All cached callers are of one version of the keyring."""
        if version != self._cached_version or len(self._cached) >= _CACHED_CALLERS_MAX:
            self._cached.clear()
            self._cached_version = version
        self._cached[key_digest] = caller

    def _unauthorized(self, request: Request, cause: str, caller: Caller | None = None) -> Refused:
        """401, or 429 once the client's address has failed too often."""
        decision = self._addresses.charge(request.client_address(self._trusted))
        error: PetstoreError = Unauthorized(self._messages.get(cause, _NO_VALID_KEY_MESSAGE))
        if not decision.allowed:
            error = RateLimited(
                "Too many requests without a valid API key came from this address; "
                f"try again in {decision.retry_after_seconds} s.",
                retry_after_seconds=decision.retry_after_seconds,
            )
        return Refused(error, decision, caller, cause)


def limit_error(decision: Decision) -> PetstoreError:
    """The error of a Decision that refuses."""
    seconds = decision.retry_after_seconds
    if decision.banned:
        return KeyBanned(
            "This API key is banned for a while, since it went on after many 429 answers; "
            f"try again in {seconds} s and back off exponentially.",
            retry_after_seconds=seconds,
        )
    window = decision.binding
    return RateLimited(
        f"The limit of {window.limit} requests per {window.name} is used up; try again in {seconds} s.",
        retry_after_seconds=seconds,
    )
