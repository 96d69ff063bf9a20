"""Parsers of settings: one for each kind of value; their ValueError names the expected form."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from ipaddress import IPv4Network, IPv6Network, ip_interface, ip_network
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, unquote, urlsplit
from zoneinfo import ZoneInfo

from petstore.core.client_address import Networks
from petstore.core.contacts import is_address
from petstore.core.durations import DAY_MS, parse_duration
from petstore.core.mails import MailServer
from petstore.core.stages import Stage
from petstore.core.zones import read_zone

if TYPE_CHECKING:
    from email.headerregistry import Address

_URL_MAX = 1_000  # characters


def choice(*values: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in values:
            raise ValueError(f"expected one of {', '.join(filter(None, values))}")
        return text

    return parse


def stage(text: str) -> Stage | None:
    """A stage; None for an empty text."""
    return Stage(choice(*Stage)(text)) if text else None


def switch(text: str) -> bool:
    return choice("on", "off")(text) == "on"


def integer(highest: int) -> Callable[[str], int]:
    """A whole number from 1 to a bound, which is allowed."""

    def parse(text: str) -> int:
        if re.fullmatch(r"[0-9]{1,18}", text, re.ASCII) is None or not 1 <= int(text) <= highest:
            raise ValueError(f"expected a whole number from 1 to {highest}")
        return int(text)

    return parse


def networks(text: str) -> Networks:
    """Addresses and networks, separated by commas; an address is a network of its own."""
    if text == "*":
        raise ValueError("'*' would trust everybody; list addresses or networks such as 10.0.0.0/8")
    return tuple(map(_network, _list(text)))


def _network(text: str) -> IPv4Network | IPv6Network:
    try:
        network = ip_network(text, strict=False)
    except ValueError:
        raise ValueError(f"{text!r} is neither an address nor a network such as 10.0.0.0/8") from None
    if "/" in text and ip_interface(text).ip != network.network_address:
        raise ValueError(f"{text} is an address within a network; write {network}")
    return network


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def origins(text: str) -> tuple[str, ...]:
    """CORS origins, in lower case: browsers send them so, and they are compared byte for byte."""
    return _each(text, r"https?://[a-z0-9.:\[\]-]+", "an origin such as https://shop.example")


def host_names(text: str) -> frozenset[str]:
    """Names of hosts without ports, in lower case."""
    expected = "a name such as petstore.internal, without a port"
    return frozenset(_each(text, r"[a-z0-9_-]+(\.[a-z0-9_-]+)*", expected))


def _each(text: str, pattern: str, expected: str) -> tuple[str, ...]:
    """The parts of a list, in lower case; each has to match."""
    for part in _list(text):
        if re.fullmatch(pattern, part, re.IGNORECASE | re.ASCII) is None:
            raise ValueError(f"{part!r} is not {expected}")
    return _list(text.lower())


def listen_host(text: str) -> str:
    """An address or a name, never empty: that would listen on every address of the machine."""
    if re.fullmatch(r"[A-Za-z0-9.:_-]+", text, re.ASCII) is None:
        raise ValueError("expected an address such as 127.0.0.1, ::1 or 0.0.0.0")
    return text


def api_url(text: str) -> str:
    """A URL that ends with /v1, or nothing. The contract bounds the headers that contain it."""
    try:
        parts = urlsplit(text)
        fits = bool(parts.hostname and parts.port != 0 and parts.path.endswith("/v1"))
        fits = fits and parts.scheme in ("http", "https")
    except ValueError:
        fits = False
    if text and not fits:
        raise ValueError(
            "expected http or https, a host, perhaps a port, and /v1: https://api.example.com/v1"
        )
    if re.search(r'[^!-~]|[<>"?#@]', text):
        raise ValueError("expected a URL in ASCII without user, query or fragment")
    if len(text) > _URL_MAX:
        raise ValueError(f"expected at most {_URL_MAX} characters")
    return text


def proxy_url(text: str) -> str:
    """The URL of an HTTP proxy, or nothing."""
    try:
        parts = urlsplit(text)
        fits = bool(parts.hostname and parts.port != 0)
        fits = fits and parts.scheme in ("http", "https") and not parts.path.strip("/")
    except ValueError:  # its text may quote a part of a password
        fits = False
    if text and not fits:
        raise ValueError("expected the URL of a proxy, such as http://proxy.internal:4750")
    return text


def mail_server(text: str) -> MailServer | None:
    """The URL of a server that takes mail, or nothing."""
    if not text:
        return None
    try:
        if re.search(r"[^!-~]", text):  # urlsplit takes a line break out, and lets a space be
            raise ValueError
        return _mail_server(urlsplit(text))
    except ValueError:  # its text may quote a part of a password
        raise ValueError(
            "expected a URL such as smtps://user:password@mail.example.com, or smtp://… with STARTTLS; the"
            " password in percent encoding, such as %2F for /"
        ) from None


def _mail_server(parts: SplitResult) -> MailServer:
    host, port, is_tls = parts.hostname, parts.port, parts.scheme == "smtps"
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    has_more = parts.path.strip("/") or parts.query or parts.fragment
    is_known = parts.scheme in ("smtp", "smtps")
    if not host or not is_known or port == 0 or has_more or bool(user) != bool(password):
        raise ValueError
    return MailServer(host, port or (465 if is_tls else 587), is_tls, user, password)


def mail_sender(text: str) -> Address | None:
    """An address with a name or without, or nothing."""
    if not text:
        return None
    from email.headerregistry import Address  # most commands send no mail
    from email.utils import getaddresses

    # A line break or a second address would become a field, or be left out in silence.
    (name, address), *others = getaddresses([text])
    if others or not (is_address(address) and text.isprintable()):
        raise ValueError("expected one address such as petstore@example.com, or Pet store <…>")
    return Address(name, addr_spec=address)


def encryption_keys(text: str) -> tuple[str, ...]:
    """Keys of 32 bytes in either base64, as URL-safe base64."""
    keys = tuple(part.replace("+", "-").replace("/", "_") for part in _list(text))
    for key in keys:
        if re.fullmatch(r"[A-Za-z0-9_-]{43}=", key, re.ASCII) is None:
            raise ValueError("expected base64 of 32 bytes, such as `openssl rand -base64 32` prints")
    return keys


def date(text: str) -> datetime:
    """The beginning of a day in UTC."""
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        raise ValueError("expected a date such as 2030-12-05") from None


def time_zone(text: str) -> ZoneInfo:
    zone = read_zone(text)
    if zone is None:
        raise ValueError("expected the name of a time zone, such as Europe/Berlin or UTC")
    return zone


def duration_to(longest: str, shortest: str = "1ms") -> Callable[[str], int]:
    """A duration in milliseconds, between both bounds."""

    def parse(text: str) -> int:
        milliseconds = parse_duration(text)
        if milliseconds < parse_duration(shortest):
            raise ValueError(f"expected at least {shortest}")
        if milliseconds > parse_duration(longest):
            raise ValueError(f"expected at most {longest}")
        return milliseconds

    return parse


def kept(text: str) -> int | None:
    """The time for which something is kept, in milliseconds, at least 30 days; None for an empty text."""
    if not text.strip():
        return None
    if (milliseconds := parse_duration(text)) < 30 * DAY_MS:
        raise ValueError("expected at least 30d, or nothing to keep everything")
    return milliseconds


def pause(text: str) -> int:
    """A duration in milliseconds, up to a minute, or `0s`."""
    return 0 if text.strip() == "0s" else duration_to("60s")(text)


def durations(text: str) -> tuple[int, ...]:
    """One or more durations, in milliseconds."""
    parsed = tuple(parse_duration(part) for part in _list(text))
    if not parsed:
        raise ValueError("expected at least one duration")
    return parsed
