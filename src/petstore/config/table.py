"""The table of settings: a field of Settings for each, with its default, its parser and its purpose."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

import msgspec

from petstore.config.values import (
    api_url,
    choice,
    date,
    duration_to,
    durations,
    encryption_keys,
    host_names,
    integer,
    kept,
    listen_host,
    mail_sender,
    mail_server,
    networks,
    origins,
    pause,
    proxy_url,
    stage,
    switch,
    time_zone,
)
from petstore.core.client_address import Networks
from petstore.core.durations import parse_duration
from petstore.core.keys import ENVIRONMENTS
from petstore.core.limits.plans import QUOTA_MAX
from petstore.core.mails import MailServer
from petstore.core.stages import Stage

if TYPE_CHECKING:
    from email.headerregistry import Address

PREFIX = "PETSTORE_"
_T = TypeVar("_T")


class Setting(msgspec.Struct, frozen=True):
    """A row of the table. `default` is a text for `parse`; secrets are masked where settings are shown."""

    field: str
    default: str
    parse: Callable[[str], Any]
    summary: str
    secret: bool

    @property
    def name(self) -> str:
        """The field without its unit: the name in a TOML file."""
        return self.field.removesuffix("_ms")

    @property
    def variable(self) -> str:
        return PREFIX + self.name.upper()


def _setting(default: str, parse: Callable[[str], _T], summary: str, *, secret: bool = False) -> _T:
    """A row in the place of the field's default, so mypy compares what `parse` returns with the field."""
    return cast("_T", Setting("", default, parse, summary, secret))


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The values in force, made by config.load alone: a field's default is its row of TABLE.

    Fields that end with _ms are milliseconds.
    """

    database_url: str = _setting("sqlite:///petstore.db", str, "Where the data is.", secret=True)
    host: str = _setting("127.0.0.1", listen_host, "Address to listen on.")
    port: int = _setting("8080", integer(65_535), "Port to listen on.")
    base_url: str = _setting(
        "", api_url, "Public base address, ending with /v1. Empty: references are paths."
    )
    stage: Stage | None = _setting(
        "", stage, "production or staging, whose keys and data are apart; empty: keys of both."
    )
    staging_base_url: str = _setting("", api_url, "Where staging is, for clients.")
    production_base_url: str = _setting("", api_url, "Where production is, for staging's clients.")
    environment: str = _setting(
        "",
        choice("", *ENVIRONMENTS),
        "Prefix of new keys without a stage: live (also if empty) is pets_live_, test is pets_test_.",
    )
    access_log: bool = _setting("on", switch, "One log line for each request.")
    log_address: str = _setting(
        "full", choice("full", "network", "off"), "How much of a client's address is logged."
    )
    log_format: str = _setting("auto", choice("auto", "json", "text"), "auto: JSON unless on a terminal.")
    log_level: str = _setting(
        "info", choice("debug", "info", "warning", "error"), "Least severe level that is logged."
    )
    trusted_proxies: Networks = _setting("", networks, "Networks whose X-Forwarded-* are believed.")
    console: str = _setting(
        "auto",
        choice("auto", "on", "off"),
        "Pages for staff and operators; auto: on a loopback address without a proxy.",
    )
    time_zone: ZoneInfo = _setting("UTC", time_zone, "The shop's time zone, for the console's pages.")
    ops_networks: Networks = _setting(
        "127.0.0.0/8,::1/128", networks, "Who may see /metrics and /readyz details."
    )
    ops_hosts: frozenset[str] = _setting("", host_names, "Further names for /metrics and /readyz details.")
    cors_origins: tuple[str, ...] = _setting("", origins, "Origins whose pages may call the interface.")
    address_per_minute: int = _setting(
        "600", integer(QUOTA_MAX), "Failed authentications an address may make."
    )
    ban_minimum_rejections: int = _setting("60", integer(QUOTA_MAX), "Fewest counted 429s before a ban.")
    ban_window_ms: int = _setting("5m", parse_duration, "Window in which 429s are counted.")
    ban_grace_ms: int = _setting(
        "2s", parse_duration, "For this time after a window's first 429 none counts."
    )
    ban_durations_ms: tuple[int, ...] = _setting(
        "1m,5m,15m,60m", durations, "Length of a key's first, second, … ban."
    )
    ban_forgiven_after_ms: int = _setting(
        "24h", parse_duration, "Without a ban for this time, the ladder starts anew."
    )
    removal_date: datetime = _setting(
        "2030-12-05", date, "End of GET /pets/{petId}; later than published, never earlier."
    )
    body_timeout_ms: int = _setting("10s", duration_to("60s"), "Deadline for a whole request body.")
    answer_timeout_ms: int = _setting(
        "30s",
        duration_to("1h", shortest="500ms"),
        "A client that takes no byte of its answer for this time is cut off.",
    )
    workers: int = _setting(
        "1", integer(256), "Processes that serve; more than one needs PETSTORE_VALKEY_URL."
    )
    worker_timeout_ms: int = _setting(
        "30s", duration_to("1h", "2s"), "A worker that hangs for this time is replaced."
    )
    drain_ms: int = _setting("1s", pause, "At a stop: how long /readyz refuses before the listener closes.")
    # Less than the ten seconds that a change is announced for (limiter/valkey/publisher.py).
    database_timeout_ms: int = _setting("5s", duration_to("8s"), "PostgreSQL: how long a statement may take.")
    database_pool: int = _setting("10", integer(1_000), "PostgreSQL: connections of each process.")
    database_prepared: bool = _setting("on", switch, "PostgreSQL: off behind PgBouncer.")
    valkey_url: str = _setting(
        "", str, "Shared counters. Empty: this process counts for itself.", secret=True
    )
    # Two calls have to fit into the second between a write's deadline and the end of its announcement.
    valkey_timeout_ms: int = _setting(
        "300ms", duration_to("400ms", "20ms"), "Valkey: an answer that takes longer is an outage."
    )
    limiter_outage: str = _setting(
        "share", choice("share", "refuse"), "Without Valkey: a local share, or 503."
    )
    replicas: int = _setting(
        "1", integer(10_000), "Machines that share the counters: what a local share is of."
    )
    migrate: str = _setting("auto", choice("auto", "on", "off"), "serve migrates; auto: a SQLite file only.")
    write_queue: int = _setting(
        "1024", integer(1_000_000), "Writes (PostgreSQL: reads too) that may wait; more are answered 503."
    )
    deliveries: bool = _setting("on", switch, "Whether this service sends webhooks and mail.")
    webhook_networks: Networks = _setting(
        "", networks, "Networks that webhooks may reach beside the public ones."
    )
    webhook_proxy: str = _setting("", proxy_url, "Sends webhooks through this proxy.", secret=True)
    secrets_key: tuple[str, ...] = _setting(
        "",
        encryption_keys,
        "Seals what webhooks are signed with: base64 of 32 bytes, former keys after it.",
        secret=True,
    )
    smtp_url: MailServer | None = _setting(
        "", mail_server, "The server that takes mail to contacts; empty: none is sent.", secret=True
    )
    mail_from: Address | None = _setting("", mail_sender, "Who that mail is from.")
    journal_keep_ms: int | None = _setting("", kept, "Older changes are removed; empty: everything is kept.")
    busy_timeout_ms: int = _setting("5s", duration_to("1h"), "How long to wait for another process's write.")
    key_rotation_overlap_ms: int = _setting("24h", parse_duration, "How long a rotated key goes on working.")

    @property
    def key_environment(self) -> str:
        """The environment of new keys: `live` or `test`."""
        return self.key_environments[0]

    @property
    def key_environments(self) -> tuple[str, ...]:
        """The environments that new keys may have, the usual one first."""
        if self.stage:
            return (self.stage.environment,)
        return tuple(sorted(ENVIRONMENTS, key=lambda name: name != (self.environment or "live")))

    @property
    def other_base_url(self) -> str:
        """The base address of the other stage; empty where it is not known."""
        return self.production_base_url if self.is_staging else self.staging_base_url

    @property
    def is_staging(self) -> bool:
        """Whether this is staging; else it is production, or has no stage."""
        return self.stage is Stage.STAGING

    @property
    def log_mark(self) -> str:
        """How lines of text begin where people read them: staging may share production's terminal."""
        return "staging: " if self.is_staging else ""

    @property
    def removal_at_ms(self) -> int:
        """When getPet ends: a Unix time."""
        return int(self.removal_date.timestamp()) * 1_000

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the listener."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def is_own(self) -> bool:
        """Whether clients are on this machine: a proxy on it makes a loopback address public."""
        return self.is_loopback and not self.trusted_proxies

    @property
    def has_console(self) -> bool:
        """Whether /console is served."""
        return self.console == "on" or (self.console == "auto" and self.is_own)

    @property
    def listens_at(self) -> str:
        """The address of the listener, without a slash at the end."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    @property
    def reached_at(self) -> str:
        """The address of the service for people, without a slash at the end."""
        return self.base_url.removesuffix("/v1") or self.listens_at

    @property
    def own_hosts(self) -> frozenset[str]:
        """The names by which operators call this service, in lower case."""
        urls = (self.base_url, self.staging_base_url)
        return self.ops_hosts | {self.host.lower()} | {urlsplit(url).hostname or "" for url in urls}


TABLE: tuple[Setting, ...] = tuple(
    msgspec.structs.replace(row, field=field)
    for field, row in zip(Settings.__struct_fields__, Settings.__struct_defaults__, strict=True)
)
