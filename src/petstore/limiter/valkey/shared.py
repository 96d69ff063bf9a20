"""Counters and versions that many processes share: opened by a URL, for a service or for one command."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from ssl import SSLError

from petstore.core.clock import Clock
from petstore.core.errors import ConfigurationError
from petstore.core.limits.bans import BanPolicy
from petstore.core.limits.counters import Limiter, MergingCounterStore
from petstore.core.versions import LEASE_SECONDS, Publisher
from petstore.limiter.valkey.observer import LimiterObserver, NoObserver
from petstore.limiter.valkey.scripts import Scripts
from petstore.limiter.valkey.url import ValkeyUrl, parse_url

try:
    from petstore.limiter.valkey import inspection
    from petstore.limiter.valkey.client import ValkeyClient
    from petstore.limiter.valkey.connection import PATIENCE_SECONDS
    from petstore.limiter.valkey.fallback import FallbackLimiter
    from petstore.limiter.valkey.inspection import CountersReport
    from petstore.limiter.valkey.limiter import ValkeyLimiter
    from petstore.limiter.valkey.publisher import CommandPublisher, ValkeyPublisher
except ModuleNotFoundError as error:
    if error.name != "libvalkey":
        raise
    raise ConfigurationError(
        "PETSTORE_VALKEY_URL needs a driver that is not installed: `make setup-scale` installs it, and in an"
        " environment of your own `pip install '.[valkey]'` in this project's directory."
    ) from None

__all__ = ["LEASE_SECONDS", "SharedCounters", "inspect", "open_publisher", "open_shared"]


class SharedCounters:
    """A link to Valkey, with what works over it."""

    def __init__(self, client: ValkeyClient, observer: LimiterObserver) -> None:
        self._client = client
        self._observer = observer
        self.publisher: Publisher = ValkeyPublisher(client)

    def limiter(
        self, counters: MergingCounterStore, clock: Clock, policy: BanPolicy, processes: int, *, refuse: bool
    ) -> Limiter:
        """The limiter; in an outage it decides by one share in `processes`, or refuses."""
        return ValkeyLimiter(
            client=self._client,
            counters=counters,
            clock=clock,
            policy=policy,
            observer=self._observer,
            fallback=None if refuse else FallbackLimiter(clock, policy, processes),
        )

    async def close(self) -> None:
        """Let go."""
        await self._client.close()


async def open_shared(
    url: str,
    observer: LimiterObserver | None = None,
    scripts: Scripts | None = None,
    patience_seconds: float = PATIENCE_SECONDS,
) -> SharedCounters:
    """Connect, for a second at most; where that fails, an outage has begun and a probe will end it.

    An answer that takes longer than `patience_seconds` is an outage too.

    Raises ConfigurationError for a URL that is not understood.
    """
    observer = observer or NoObserver()
    client = ValkeyClient(_usable(url), scripts or Scripts(), observer, patience_seconds)
    await client.open()
    await client.check_persistence()
    return SharedCounters(client, observer)


def open_publisher(url: str, wait: Callable[[str], Awaitable[None]]) -> CommandPublisher:
    """For a command. `wait` is called, with the reason, where replicas could not be told: it has to take
    LEASE_SECONDS.

    Raises ConfigurationError for a URL that is not understood.
    """
    return CommandPublisher(ValkeyClient(_usable(url), Scripts(), NoObserver()), wait)


async def inspect(url: str, clock: Clock) -> CountersReport:
    """What the Valkey says about itself. Raises Unavailable, and ConfigurationError for a URL."""
    return await inspection.inspect(_usable(url), clock)


def _usable(text: str) -> ValkeyUrl:
    """The URL, whose file of authorities is there: without it every connection would look like an outage."""
    url = parse_url(text)
    if url.tls:
        try:
            url.tls_context()
        except OSError as error:
            reason = error.strerror if type(error) is not SSLError else "it holds no certificate"
            raise ConfigurationError(
                f"PETSTORE_VALKEY_URL: {url.authority_file} can't be used as its ca: {reason}."
            ) from error
    return url
