"""The gate before everything under /v1: bearer -> key -> Decision.

It wraps all of /v1; exempting something from it is a visible act in api/app.py. A refusal costs a client's
address, not an account: without a valid key there is no account.
"""

from __future__ import annotations

from typing import Protocol

from petstore.api.pipeline.request import Request
from petstore.core.client_address import Networks
from petstore.core.clock import Clock
from petstore.core.errors import KeyBanned, RateLimited, Unauthorized
from petstore.core.keys import Caller, KeyRepository, digest, is_wellformed
from petstore.core.limits.counters import Limiter
from petstore.core.limits.decision import AddressDecision, Decision
from petstore.core.limits.usage import UsageMeter
from petstore.core.versions import Version

_CACHED_CALLERS_MAX = 100_000

_ONE_MESSAGE = "The API key is missing or invalid; send it as 'Authorization: Bearer <API_KEY>'."
# Of keys that somebody has had: whoever sends one knows it.
_MESSAGES = {
    "revoked": "This API key was revoked; use another one.",
    "expired": "This API key has expired; use its successor or ask for a new one.",
}


class AddressQuota(Protocol):
    """Failed authentications by client address."""

    def charge(self, address: str) -> AddressDecision: ...

    def peek(self, address: str) -> AddressDecision: ...


class Gate:
    """Decides whether a request may pass; keeps callers for as long as the keyring's version stands."""

    def __init__(
        self,
        *,
        keys: KeyRepository,
        limiter: Limiter,
        addresses: AddressQuota,
        meter: UsageMeter,
        clock: Clock,
        trusted_proxies: Networks = (),
    ) -> None:
        self._keys = keys
        self._limiter = limiter
        self._addresses = addresses
        self._meter = meter
        self._clock = clock
        self._trusted = trusted_proxies
        self._kept: dict[bytes, Caller] = {}
        self._kept_version: Version | None = None
        self.key_reads = 0

    @property
    def kept_keys(self) -> int:
        return len(self._kept)

    async def admit(self, request: Request, *, deprecated: bool) -> None:
        """Let an authenticated request pass at the cost of one, and note the Decision on it.

        Raises Unauthorized, RateLimited and KeyBanned; StoreUnavailable from the store.
        """
        token = request.bearer_token()
        if token is None:
            cause = "missing" if request.header(b"authorization") is None else "malformed"
            raise self._failed(request, cause)
        # The digest first, whatever the token: the work says nothing about how close a guess was.
        key_digest = digest(token)
        caller, decision = self._kept.get(key_digest), None
        # A key whose end has come is read afresh: its refusal is never an old one.
        if caller is not None and (
            caller.expires_at_ms is None or caller.expires_at_ms > self._clock.now_ms()
        ):
            version = self._kept_version
            limiter = self._limiter
            decision = limiter.try_take(caller, version) or await limiter.take(caller, version)
            if decision is None and version == self._kept_version:
                self._kept.clear()
        if caller is None or decision is None:
            caller, decision = await self._take_afresh(request, token, key_digest)
        request.caller = caller
        request.decision = decision
        self._meter.count(caller.account_id, caller.key_id, decision.now_ms, decision.allowed, deprecated)
        if not decision.allowed:
            raise _refusal(decision)

    def describe(self, request: Request) -> AddressDecision:
        """The address's window, for an answer that was given before authentication."""
        return self._addresses.peek(request.client_address(self._trusted))

    async def _take_afresh(
        self, request: Request, token: bytes, key_digest: bytes
    ) -> tuple[Caller, Decision]:
        """Read the caller from the store, take by it, and keep it when nothing has changed meanwhile."""
        version = self._limiter.keyring_version()
        if not (token.isascii() and is_wellformed(token.decode("ascii"))):
            raise self._failed(request, "malformed")
        self.key_reads += 1
        caller = await self._keys.find_caller(key_digest)
        if caller is None:
            raise self._failed(request, "unknown")
        self._check_term(request, caller)
        decision = await self._limiter.take(caller)
        assert decision is not None  # nothing was said about a version
        if version is not None and version == decision.versions.keyring:
            self._keep(version, key_digest, caller)
        return caller, decision

    def _keep(self, version: Version, key_digest: bytes, caller: Caller) -> None:
        """Everything kept is of one version of the keyring."""
        if version != self._kept_version or len(self._kept) >= _CACHED_CALLERS_MAX:
            self._kept.clear()
            self._kept_version = version
        self._kept[key_digest] = caller

    def _check_term(self, request: Request, caller: Caller) -> None:
        """Revoked and expired keys are told apart only here, after the digest matched."""
        request.caller = caller
        if caller.revoked_at_ms is not None:
            raise self._failed(request, "revoked")
        if caller.expires_at_ms is not None and caller.expires_at_ms <= self._clock.now_ms():
            raise self._failed(request, "expired")

    def _failed(self, request: Request, cause: str) -> Exception:
        """401, or 429 once the client's address has failed too often; `cause` is for the operator."""
        request.cause = cause
        decision = request.decision = self._addresses.charge(request.client_address(self._trusted))
        if decision.allowed:
            return Unauthorized(_MESSAGES.get(cause, _ONE_MESSAGE))
        return RateLimited(
            "Too many requests without a valid API key came from this address; "
            f"try again in {decision.retry_after_seconds} s.",
            retry_after_seconds=decision.retry_after_seconds,
        )


def _refusal(decision: Decision) -> Exception:
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
