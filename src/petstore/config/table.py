"""The table of settings: names, defaults, how each is read, and the record of the values in force."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import msgspec

from petstore.config.values import (
    base_url,
    choice,
    date,
    duration_to,
    durations,
    host,
    host_names,
    integer,
    networks,
    origins,
    pause_to,
    switch,
)
from petstore.core.client_address import Networks
from petstore.core.durations import parse_duration
from petstore.core.keys import ENVIRONMENTS
from petstore.core.limits.plans import QUOTA_MAX

PREFIX = "PETSTORE_"


class Setting(msgspec.Struct, frozen=True):
    """A row of the table: the name after the prefix in lower case, its default as text, how it is read."""

    name: str
    default: str
    parse: Callable[[str], Any]
    summary: str
    secret: bool = False
    unit: str = ""

    @property
    def field(self) -> str:
        """The field of Settings: the name and its unit."""
        return self.name + self.unit

    @property
    def variable(self) -> str:
        return PREFIX + self.name.upper()


TABLE = (
    Setting("database_url", "sqlite:///petstore.db", str, "Where the data is.", secret=True),
    Setting("host", "127.0.0.1", host, "Address to listen on."),
    Setting("port", "8080", integer(1, 65_535), "Port to listen on."),
    Setting("base_url", "", base_url, "Public base address, ending with /v1. Empty: references are paths."),
    Setting("staging_base_url", "", base_url, "A second server in the OpenAPI document."),
    Setting("environment", "live", choice(*ENVIRONMENTS), "Prefix of new keys: pets_live_ or pets_test_."),
    Setting("access_log", "on", switch, "One log line for each request."),
    Setting(
        "log_address", "full", choice("full", "network", "off"), "How much of a client's address is logged."
    ),
    Setting("log_format", "auto", choice("auto", "json", "text"), "auto: JSON unless on a terminal."),
    Setting(
        "log_level",
        "info",
        choice("debug", "info", "warning", "error"),
        "Least severe level that is logged.",
    ),
    Setting("trusted_proxies", "", networks, "Networks whose X-Forwarded-For is believed."),
    Setting("ops_networks", "127.0.0.0/8,::1/128", networks, "Who may see /metrics and /readyz details."),
    Setting("ops_hosts", "", host_names, "More names under which they may see them."),
    Setting("cors_origins", "", origins, "Origins whose pages may call the interface."),
    Setting(
        "address_per_minute", "600", integer(1, QUOTA_MAX), "Failed authentications an address may make."
    ),
    Setting("ban_minimum_rejections", "60", integer(1, QUOTA_MAX), "Fewest counted 429s before a ban."),
    Setting("ban_window", "5m", parse_duration, "Window in which 429s are counted.", unit="_ms"),
    Setting("ban_grace", "2s", parse_duration, "After a window's first 429: not counted.", unit="_ms"),
    Setting(
        "ban_durations", "1m,5m,15m,60m", durations, "Length of a key's first, second, … ban.", unit="_ms"
    ),
    Setting(
        "ban_forgiven_after",
        "24h",
        parse_duration,
        "Without a ban for so long, the ladder starts anew.",
        unit="_ms",
    ),
    Setting(
        "removal_date", "2030-12-05", date, "End of GET /pets/{petId}; later than published, never earlier."
    ),
    Setting("body_timeout", "10s", duration_to("60s"), "Deadline for a whole request body.", unit="_ms"),
    Setting(
        "answer_timeout",
        "30s",
        duration_to("1h", shortest="500ms"),
        "A client that takes no byte of its answer for so long is cut off.",
        unit="_ms",
    ),
    Setting(
        "workers", "1", integer(1, 256), "Processes that serve; more than one needs PETSTORE_VALKEY_URL."
    ),
    Setting(
        "worker_timeout",
        "30s",
        duration_to("1h", "2s"),
        "A worker that hangs for so long is replaced.",
        unit="_ms",
    ),
    Setting(
        "drain",
        "1s",
        pause_to("60s"),
        "At a stop: how long /readyz refuses before the listener closes.",
        unit="_ms",
    ),
    # Less than the ten seconds for which a writer is waited for (limiter/valkey/publisher.py).
    Setting(
        "database_timeout", "5s", duration_to("8s"), "PostgreSQL: how long a statement may take.", unit="_ms"
    ),
    Setting("database_pool", "10", integer(1, 1_000), "PostgreSQL: connections of each process."),
    Setting("database_prepared", "on", switch, "PostgreSQL: off behind PgBouncer."),
    Setting("valkey_url", "", str, "Shared counters. Empty: this process counts for itself.", secret=True),
    Setting("limiter_outage", "share", choice("share", "refuse"), "Without Valkey: a local share, or 503."),
    Setting(
        "replicas", "1", integer(1, 10_000), "Machines that share the counters: what a local share is of."
    ),
    Setting("migrate", "auto", choice("auto", "on", "off"), "serve migrates; auto: a SQLite file only."),
    Setting("write_queue", "1024", integer(1, 1_000_000), "Writes that may wait; more are answered 503."),
    Setting(
        "busy_timeout", "5s", duration_to("1h"), "How long to wait for another process's write.", unit="_ms"
    ),
    Setting(
        "key_rotation_overlap", "24h", parse_duration, "How long a rotated key goes on working.", unit="_ms"
    ),
)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The values in force, parsed; one field for each row of TABLE."""

    database_url: str
    migrate: str
    host: str
    port: int
    base_url: str
    staging_base_url: str
    environment: str
    access_log: bool
    log_address: str
    log_format: str
    log_level: str
    trusted_proxies: Networks
    ops_networks: Networks
    ops_hosts: frozenset[str]
    cors_origins: tuple[str, ...]
    address_per_minute: int
    ban_minimum_rejections: int
    ban_window_ms: int
    ban_grace_ms: int
    ban_durations_ms: tuple[int, ...]
    ban_forgiven_after_ms: int
    removal_date: datetime
    body_timeout_ms: int
    answer_timeout_ms: int
    write_queue: int
    busy_timeout_ms: int
    key_rotation_overlap_ms: int
    workers: int
    worker_timeout_ms: int
    drain_ms: int
    database_timeout_ms: int
    database_pool: int
    database_prepared: bool
    valkey_url: str
    limiter_outage: str
    replicas: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the listener."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def own_hosts(self) -> frozenset[str]:
        """The names by which operators call this service, in lower case."""
        urls = (self.base_url, self.staging_base_url)
        return self.ops_hosts | {self.host.lower()} | {urlsplit(url).hostname or "" for url in urls}
