"""`petstore limits`: the counters that replicas share."""

from __future__ import annotations

import click

from petstore.cli.context import Session
from petstore.cli.groups import LazyGroup
from petstore.cli.output import echo_err, write_json, write_record


@click.group(cls=LazyGroup)
def limits() -> None:
    """The counters of limits that replicas share."""


@limits.offers("check", "petstore limits check")
def check(session: Session, as_json: bool) -> None:
    """Check the Valkey that replicas share.

    Says whether the Valkey of PETSTORE_VALKEY_URL can count, what a restart of it brings back, and how far
    its clock is ahead. Exit code 75 when it can't be reached or can't count. Changes no counter.
    """
    from petstore.wiring import administration

    report = administration.check_counters(session.settings, session.clock)
    if report is None:
        if as_json:
            write_json(None)
        echo_err("PETSTORE_VALKEY_URL is not set: one process counts by itself, and nothing is shared.")
        return
    record = {
        "valkey": report.address,
        "version": report.version,
        "persistence": report.persistence,
        "clockAheadSeconds": report.ahead_ms / 1_000,
        "warnings": report.warnings,
    }
    fields = {
        "valkey": report.address,
        "version": report.version,
        "persistence": report.persistence,
        "clock ahead": f"{report.ahead_ms / 1_000:.3f} s",
    }
    write_record(record, fields, as_json)
    for warning in () if as_json else report.warnings:
        echo_err(f"warning: {warning}")
