"""Crowds without keys: 1,300 connections ask a service on PostgreSQL for its readiness, then as many send
keys that nobody was given, while clients with a key add and list animals. The latter always succeed, and the
crowd gets what one of it would get alone.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.support.cluster import Load
from tests.support.flood import READINESS, Flood, unknown_keys
from tests.support.postgres import fresh_database
from tests.support.report import Report
from tests.support.server import issue_key, running_server
from tests.support.waiting import pause


def run(report: Report, _seed: int, seconds: float) -> None:
    """Half of the time for each kind of crowd; there is no chance in it."""
    with tempfile.TemporaryDirectory() as folder, fresh_database() as url:
        key = issue_key(url)
        with running_server(Path(folder), database_url=url, access_log="off") as server:
            for name, requests, answers in (
                ("readiness", READINESS, {200}),
                ("unknown keys", unknown_keys(), {401, 429}),
            ):
                flood = Flood(server.port, requests)
                with flood.going_on(), Load(server.port, key) as load:
                    pause(seconds / 2)
                report.counts[f"answers to {name}"] += flood.statuses.total()
                report.counts["answers with a key"] += load.answered.total()
                report.took("with a key", load.slowest)
                if load.failed:
                    report.fault(f"{name}: with a key {load.failed[:9]}")
                if not set(flood.statuses) <= answers or flood.broken:
                    report.fault(f"{name}: {dict(flood.statuses)}, {flood.broken} broken")
