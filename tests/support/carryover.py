"""A database of the first release with animals and their history, and what a migration must keep of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.backends import execute_at
from tests.support.schemas import make_first_release

_NUMBERS = "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {})"
_FILL = (
    "{animals} INSERT INTO pets (name, category_id, status)"
    " SELECT 'animal ' || n, n % 1000, 'pending' FROM numbers ORDER BY n;"
    "INSERT INTO accounts (name, plan, per_minute, per_day, created_at_ms)"
    " VALUES ('shop', 'free', 60, 1000, 1);"
    "{changes} INSERT INTO pet_status_changes (pet_id, at_ms, actor, from_status, to_status)"
    " SELECT n, 1700000000000 + n, 'cli:anna', 'available', 'pending' FROM numbers ORDER BY n"
)
_CARRIED = (
    "SELECT count(*), min(at_ms), max(at_ms), sum(subject_id), min(actor), max(actor),"
    " min(before), max(after), count(DISTINCT subject_id) FROM journal"
    " WHERE subject = 'pet' AND action = 'changed'"
)


def fill_first_release(url: str, animals: int, changes: int) -> None:
    """A database of 1.0.0 with so many animals, of which the first `changes` became pending."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        make_first_release(url, monkeypatch)
    for each in _FILL.format(animals=_NUMBERS.format(animals), changes=_NUMBERS.format(changes)).split(";"):
        execute_at(url, each)


def faults(url: str, animals: int, changes: int) -> Iterator[str]:
    """What of `fill_first_release` is not there any more, or not in the journal."""
    ((count, *rest),) = execute_at(url, _CARRIED)
    expected = (
        *(1_700_000_000_001, 1_700_000_000_000 + changes, changes * (changes + 1) // 2),
        *("cli:anna", "cli:anna", '{"status":"available"}', '{"status":"pending"}', changes),
    )
    if (count, *rest) != (changes, *expected):
        yield f"of {changes} changes the journal has {count}: {rest}"
    if execute_at(url, "SELECT count(*), count(DISTINCT name) FROM pets") != [(animals, animals)]:
        yield "animals are missing"
    if execute_at(url, "SELECT count(*) FROM pet_status_changes") != [(changes,)]:
        yield "programs of 1.0.0 do not find the history"
