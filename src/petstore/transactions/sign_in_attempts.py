"""Attempts at passwords, for both databases: each is one counted row, so replicas can't exceed a budget."""

from __future__ import annotations

from msgspec.structs import replace

from petstore.core.client_address import network_of
from petstore.core.errors import TooManyTries
from petstore.core.people import Person
from petstore.core.sign_ins import (
    NETWORK_KNOWN_MS,
    NEW_NETWORKS,
    NEW_NETWORKS_SUBJECT,
    PAIR,
    CountedWindow,
    SignInAttempt,
    pair_subject,
)
from petstore.transactions.people import PASSWORD_AT, PERSON_COLUMNS, read_person
from petstore.transactions.script import Script, removal, statement

_TRIED = statement(
    "SELECT EXISTS (SELECT 1 FROM known_addresses k WHERE k.person_id = p.id AND k.network = $2"
    f" AND k.used_at_ms > $3), {PERSON_COLUMNS} FROM people p WHERE p.name = $1"
)
_WINDOWS = statement("SELECT subject, tries, opened_ms FROM sign_in_tries WHERE subject IN ($1, $2)")
# A window that opens in the future, because the clock was set back, opens anew.
_TAKE = statement(
    "INSERT INTO sign_in_tries (subject, opened_ms, tries) VALUES ($1, $2, 1)"
    " ON CONFLICT (subject) DO UPDATE SET"
    " tries = CASE WHEN abs($2 - sign_in_tries.opened_ms) < $3 THEN sign_in_tries.tries + 1 ELSE 1 END,"
    " opened_ms = CASE WHEN abs($2 - sign_in_tries.opened_ms) < $3 THEN sign_in_tries.opened_ms ELSE $2 END"
    " RETURNING tries, opened_ms"
)
_GIVE_BACK = statement(
    "UPDATE sign_in_tries SET tries = tries - 1 WHERE subject = $1 AND opened_ms = $2 AND tries > 0"
)
_CLEAR = statement("DELETE FROM sign_in_tries WHERE subject = $1")
# Remember that the person signed in from there.
KNOW_NETWORK = statement(
    "INSERT INTO known_addresses (person_id, network, used_at_ms) VALUES ($1, $2, $3)"
    " ON CONFLICT (person_id, network) DO UPDATE SET used_at_ms = $3"
)
_WINDOW_MAX_MS = max(PAIR.window_ms, NEW_NETWORKS.window_ms)
OLD_ATTEMPTS = removal("sign_in_tries", "subject", f"opened_ms + {_WINDOW_MAX_MS} < $1")
# Only 1.1.0 fills and reads known_devices; the release after this one drops the table.
OLD_NETWORKS = tuple(
    statement(f"DELETE FROM {table} WHERE used_at_ms + {NETWORK_KNOWN_MS} < $1")
    for table in ("known_addresses", "known_devices")
)


def read_attempt(now_ms: int, name: str, is_a_name: bool, address: str) -> Script[SignInAttempt]:
    """An attempt that is not counted yet. Raises TooManyTries when a window is spent, after two reads."""
    network = network_of(address)
    person: Person | None = None
    stored: str | None = None
    pair, new_networks = (
        CountedWindow(pair_subject(name, network), PAIR),
        CountedWindow(NEW_NETWORKS_SUBJECT, NEW_NETWORKS),
    )
    windows: tuple[CountedWindow, ...] = (pair, new_networks)
    if is_a_name:  # PostgreSQL refuses some other text, such as U+0000
        for knows_network, *row in (yield _TRIED, (name, network, now_ms - NETWORK_KNOWN_MS)):
            person = read_person(row)
            stored = None if person.disabled_at_ms is not None else row[PASSWORD_AT]
            windows = (pair,) if knows_network else windows
    counts = {window.subject: window for window in windows}
    for subject, tries, opened_ms in (yield _WINDOWS, (pair.subject, windows[-1].subject)):
        budget = counts[subject].budget
        if tries >= budget.attempts and abs(now_ms - opened_ms) < budget.window_ms:
            raise TooManyTries(opened_ms + budget.window_ms - now_ms)
    return SignInAttempt(person, stored, network, windows)


def count_attempt(now_ms: int, attempt: SignInAttempt) -> Script[SignInAttempt]:
    """Count an attempt. Raises TooManyTries, so that the transaction counts nothing.

    Every transaction locks the windows in this order.
    """
    counted = []
    for window in attempt.windows:
        budget = window.budget
        ((tries, opened_ms),) = yield _TAKE, (window.subject, now_ms, budget.window_ms)
        if tries > budget.attempts:
            raise TooManyTries(opened_ms + budget.window_ms - now_ms)
        counted.append(replace(window, opened_ms=opened_ms))
    return replace(attempt, windows=tuple(counted))


def give_back(now_ms: int, attempt: SignInAttempt, person_id: int) -> Script[None]:
    """Clear the pair after a right password, give the other window its attempt back, and know the network."""
    pair, *others = attempt.windows
    yield _CLEAR, (pair.subject,)
    for window in others:
        yield _GIVE_BACK, (window.subject, window.opened_ms)
    yield KNOW_NETWORK, (person_id, attempt.network, now_ms)
