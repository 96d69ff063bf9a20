"""Opens this package by a URL: for a service, for a command that writes, for an inspection."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from ssl import SSLError

from petstore.core.clock import Clock
from petstore.core.errors import ConfigurationError
from petstore.limiter.valkey.observer import LimiterObserver, NoObserver
from petstore.limiter.valkey.scripts import Scripts
from petstore.limiter.valkey.url import ValkeyUrl, parse_url

try:
    from petstore.limiter.valkey import inspection
    from petstore.limiter.valkey.client import ValkeyClient
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

__all__ = [
    "FallbackLimiter",
    "ValkeyLimiter",
    "ValkeyPublisher",
    "claim_for",
    "inspect",
    "open_client",
    "open_publisher",
    "usable",
]


async def open_client(
    url: str, patience_seconds: float, observer: LimiterObserver | None = None, scripts: Scripts | None = None
) -> ValkeyClient:
    """Connect, in one second at most. A failure begins an outage, and so does a reply that takes longer than
    `patience_seconds`. Raises ConfigurationError for the URL."""
    client = ValkeyClient(usable(url), scripts or Scripts(), observer or NoObserver(), patience_seconds)
    await client.open()
    await client.check_persistence()
    return client


def open_publisher(
    url: str, patience_seconds: float, wait: Callable[[str], Awaitable[None]]
) -> CommandPublisher:
    """For a command. During an outage it calls `wait` with the reason, which has to take LEASE_SECONDS (see
    core/versions.py). Raises ConfigurationError for the URL."""
    return CommandPublisher(ValkeyClient(usable(url), Scripts(), NoObserver(), patience_seconds), wait)


async def inspect(url: str, clock: Clock) -> CountersReport:
    """Check the Valkey. Raises Unavailable, and ConfigurationError for the URL."""
    return await inspection.inspect(usable(url), clock)


async def claim_for(url: str, stage: str) -> str:
    """The stage that the Valkey counts for; see inspection.claim. Raises ConfigurationError for the URL."""
    return await inspection.claim(usable(url), stage)


def usable(text: str) -> ValkeyUrl:
    """The URL with a readable CA file: without it every connection would look like an outage.

    Raises ConfigurationError.
    """
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
