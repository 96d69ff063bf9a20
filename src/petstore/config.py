"""Settings: one table of data, read once from the environment and a TOML file, checked in combination.

The environment wins over the file. docs/settings.md is held to this table by a test.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_interface, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from petstore.addresses import Networks
from petstore.durations import parse_duration
from petstore.errors import ConfigurationError
from petstore.keys import ENVIRONMENTS
from petstore.plans import QUOTA_MAX

PREFIX = "PETSTORE_"
# Of GET /pets/{petId} (specification, Versioning): it may be postponed and never brought forward.
PUBLISHED_REMOVAL = datetime(2030, 12, 5, tzinfo=UTC)


def _choice(*values: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in values:
            raise ValueError(f"expected one of {', '.join(values)}")
        return text

    return parse


def _switch(text: str) -> bool:
    return _choice("on", "off")(text) == "on"


def _integer(lowest: int, highest: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if re.fullmatch(r"[0-9]{1,18}", text, re.ASCII) is None or not lowest <= int(text) <= highest:
            raise ValueError(f"expected a whole number from {lowest} to {highest}")
        return int(text)

    return parse


def _networks(text: str) -> Networks:
    if text == "*":
        raise ValueError("'*' would trust everybody; list addresses or networks such as 10.0.0.0/8")
    return tuple(map(_network, _list(text)))


def _network(text: str) -> IPv4Network | IPv6Network:
    network = ip_network(text, strict=False)
    if "/" in text and ip_interface(text).ip != network.network_address:
        raise ValueError(f"{text} is an address within a network; write {network}")
    return network


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _origins(text: str) -> tuple[str, ...]:
    # Browsers send the scheme and the name in lower case, and what they send is compared byte for byte.
    for origin in _list(text):
        if re.fullmatch(r"https?://[a-z0-9.:\[\]-]+", origin, re.IGNORECASE | re.ASCII) is None:
            raise ValueError(f"{origin!r} is not an origin such as https://shop.example")
    return _list(text.lower())


def _host(text: str) -> str:
    # An empty one would listen on every address of the machine.
    if re.fullmatch(r"[A-Za-z0-9.:_-]+", text, re.ASCII) is None:
        raise ValueError("expected an address such as 127.0.0.1, ::1 or 0.0.0.0")
    return text


def _base_url(text: str) -> str:
    parts = urlsplit(text)
    if text and (parts.scheme not in ("http", "https") or not parts.netloc or not parts.path.endswith("/v1")):
        raise ValueError("expected a URL that ends with /v1, such as https://api.example.com/v1")
    if parts.query or parts.fragment or "@" in text or re.search(r'[^!-~]|[<>"]', text):
        raise ValueError("expected a URL in ASCII without user, query or fragment")
    return text


def _date(text: str) -> datetime:
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        raise ValueError("expected a date such as 2030-12-05") from None


def _duration_to(longest: str) -> Callable[[str], int]:
    def parse(text: str) -> int:
        milliseconds = parse_duration(text)
        if milliseconds > parse_duration(longest):
            raise ValueError(f"expected at most {longest}")
        return milliseconds

    return parse


def _durations(text: str) -> tuple[int, ...]:
    parsed = tuple(parse_duration(part) for part in _list(text))
    if not parsed:
        raise ValueError("expected at least one duration")
    return parsed


class Setting(msgspec.Struct, frozen=True):
    """A row of the table: the name after the prefix in lower case, its default as text, how it is read."""

    name: str
    default: str
    parse: Callable[[str], Any]
    summary: str
    secret: bool = False

    @property
    def variable(self) -> str:
        return PREFIX + self.name.upper()


TABLE = (
    Setting("database_url", "sqlite:///petstore.db", str, "Where the data is.", secret=True),
    Setting("host", "127.0.0.1", _host, "Address to listen on."),
    Setting("port", "8080", _integer(1, 65_535), "Port to listen on."),
    Setting("base_url", "", _base_url, "Public base address, ending with /v1. Empty: references are paths."),
    Setting("staging_base_url", "", _base_url, "A second server in the OpenAPI document."),
    Setting("environment", "live", _choice(*ENVIRONMENTS), "Prefix of new keys: pets_live_ or pets_test_."),
    Setting("access_log", "on", _switch, "One log line for each request under /v1."),
    Setting("log_format", "auto", _choice("auto", "json", "text"), "auto: JSON unless on a terminal."),
    Setting(
        "log_level",
        "info",
        _choice("debug", "info", "warning", "error"),
        "Least severe level that is logged.",
    ),
    Setting("trusted_proxies", "", _networks, "Networks whose X-Forwarded-For is believed."),
    Setting("ops_networks", "127.0.0.0/8,::1/128", _networks, "Who may see /metrics and /readyz details."),
    Setting("cors_origins", "", _origins, "Origins whose pages may call the interface."),
    Setting(
        "address_per_minute", "600", _integer(1, QUOTA_MAX), "Failed authentications an address may make."
    ),
    Setting("ban_minimum_rejections", "60", _integer(1, QUOTA_MAX), "Fewest counted 429s before a ban."),
    Setting("ban_window", "5m", parse_duration, "Window in which 429s are counted."),
    Setting("ban_grace", "2s", parse_duration, "After a window's first 429: not counted."),
    Setting("ban_durations", "1m,5m,15m,60m", _durations, "Length of a key's first, second, … ban."),
    Setting(
        "ban_forgiven_after", "24h", parse_duration, "Without a ban for so long, the ladder starts anew."
    ),
    Setting(
        "removal_date", "2030-12-05", _date, "End of GET /pets/{petId}; later than published, never earlier."
    ),
    Setting("body_timeout", "10s", _duration_to("60s"), "Deadline for a whole request body."),
    Setting("write_queue", "1024", _integer(1, 1_000_000), "Writes that may wait; more are answered 503."),
    Setting("busy_timeout", "5s", _duration_to("1h"), "How long to wait for another process's write."),
    Setting("key_rotation_overlap", "24h", parse_duration, "How long a rotated key goes on working."),
)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The values in force, parsed; one field for each row of TABLE. Durations are in milliseconds."""

    database_url: str
    host: str
    port: int
    base_url: str
    staging_base_url: str
    environment: str
    access_log: bool
    log_format: str
    log_level: str
    trusted_proxies: Networks
    ops_networks: Networks
    cors_origins: tuple[str, ...]
    address_per_minute: int
    ban_minimum_rejections: int
    ban_window: int
    ban_grace: int
    ban_durations: tuple[int, ...]
    ban_forgiven_after: int
    removal_date: datetime
    body_timeout: int
    write_queue: int
    busy_timeout: int
    key_rotation_overlap: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the listener."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


def read_environment() -> dict[str, str]:
    """The PETSTORE_* variables: the only place that looks at the environment."""
    return {name: value for name, value in os.environ.items() if name.startswith(PREFIX)}


class Origin(msgspec.Struct, frozen=True):
    """A setting's text in force and where it comes from: `default`, a file, or a variable."""

    text: str
    source: str


def texts(environment: Mapping[str, str]) -> dict[str, Origin]:
    """Each setting's text in force: the default, then the TOML file, then the environment.

    Raises ConfigurationError for names that are not in the table.
    """
    values = {setting.name: Origin(setting.default, "default") for setting in TABLE}
    rest = dict(environment)
    path = rest.pop(PREFIX + "CONFIG", "")
    if path:
        read = _read_file(Path(path), values)
        values.update({name: Origin(text, path) for name, text in read.items()})
    for setting in TABLE:
        if setting.variable in rest:
            values[setting.name] = Origin(rest.pop(setting.variable), setting.variable)
        if setting.secret and (named := rest.pop(f"{setting.variable}_FILE", "")):
            if setting.variable in environment:
                raise ConfigurationError(
                    f"{setting.variable} and {setting.variable}_FILE contradict; set one."
                )
            values[setting.name] = Origin(_read_secret(Path(named), setting), named)
    if rest:
        unknown = ", ".join(sorted(rest))
        raise ConfigurationError(f"{unknown}: no such setting; `petstore config` lists them all.")
    return values


def load(environment: Mapping[str, str] | None = None) -> Settings:
    """The settings in force. Raises ConfigurationError with one line for the first thing that is wrong."""
    values = texts(read_environment() if environment is None else environment)
    parsed = {}
    for setting in TABLE:
        text = values[setting.name].text
        try:
            parsed[setting.name] = setting.parse(text)
        except ValueError as error:
            raise ConfigurationError(f"{setting.variable}={text!r}: {error}.") from None
    settings = Settings(**parsed)
    _check_together(settings)
    return settings


def _check_together(settings: Settings) -> None:
    if settings.removal_date < PUBLISHED_REMOVAL:
        raise ConfigurationError(
            "PETSTORE_REMOVAL_DATE: the published date, 2030-12-05, may be postponed, never brought forward."
        )
    if any(network.prefixlen == 0 for network in settings.trusted_proxies):
        raise ConfigurationError("PETSTORE_TRUSTED_PROXIES: a network with /0 would trust everybody.")
    if list(settings.ban_durations) != sorted(settings.ban_durations):
        raise ConfigurationError(
            "PETSTORE_BAN_DURATIONS: each ban must last at least as long as the one before."
        )
    if settings.ban_grace >= settings.ban_window:
        raise ConfigurationError("PETSTORE_BAN_GRACE must be shorter than PETSTORE_BAN_WINDOW.")


def _read_file(path: Path, known: Collection[str]) -> dict[str, str]:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"PETSTORE_CONFIG={str(path)!r} can't be read: {error}.") from None
    unknown = sorted(set(table) - set(known))
    if unknown:
        raise ConfigurationError(
            f"{path}: no such setting: {', '.join(unknown)}; `petstore config` lists them all."
        )
    return {name: _as_text(value) for name, value in table.items()}


def _as_text(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list):
        return ",".join(map(_as_text, value))
    return str(value)


def _read_secret(path: Path, setting: Setting) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ConfigurationError(f"{setting.variable}_FILE={str(path)!r} can't be read: {error}.") from None
