"""Tries at passwords, for both databases: each is one counted row, so replicas can't exceed a budget."""

from __future__ import annotations

from msgspec.structs import replace

from petstore.core.client_address import network_of
from petstore.core.errors import TooManyTries
from petstore.core.people import Person
from petstore.core.sign_ins import (
    ADDRESS_KNOWN_MS,
    BUDGETS,
    LONGEST_WINDOW_MS,
    OF_ADDRESS,
    OF_NAME,
    OF_PAIR,
    Attempt,
    Budget,
    subject_of,
)
from petstore.transactions.people import PASSWORD_AT, PERSON_COLUMNS, read_person
from petstore.transactions.script import Database, Script, Statement, statement

_TRIED = statement(
    "SELECT EXISTS (SELECT 1 FROM known_addresses k WHERE k.person_id = p.id AND k.network = $2"
    f" AND k.used_at_ms > $3), {PERSON_COLUMNS} FROM people p WHERE p.name = $1"
)
_WINDOWS = statement("SELECT subject, tries, opened_ms FROM sign_in_tries WHERE subject IN ($1, $2, $3)")
# A window that opened later than the clock could say, because that was set back, is opened anew.
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
_KNOW = statement(
    "INSERT INTO known_addresses (person_id, network, used_at_ms) VALUES ($1, $2, $3)"
    " ON CONFLICT (person_id, network) DO UPDATE SET used_at_ms = $3"
)
_PURGE_AT_A_TIME = 1_000
_PURGE = Statement(
    sqlite="DELETE FROM sign_in_tries WHERE subject IN (SELECT subject FROM sign_in_tries"
    f" WHERE opened_ms + {LONGEST_WINDOW_MS} < ?1 LIMIT {_PURGE_AT_A_TIME}) RETURNING subject",
    postgres="DELETE FROM sign_in_tries WHERE subject IN (SELECT subject FROM sign_in_tries"
    f" WHERE opened_ms + {LONGEST_WINDOW_MS} < $1 LIMIT {_PURGE_AT_A_TIME} FOR UPDATE SKIP LOCKED)"
    " RETURNING subject",
)
# Only 1.1.0 fills and reads known_devices; the release after this one drops the table.
_PURGE_KNOWN = tuple(
    statement(f"DELETE FROM {table} WHERE used_at_ms + {ADDRESS_KNOWN_MS} < $1")
    for table in ("known_addresses", "known_devices")
)


def look(name: str, is_a_name: bool, address: str, now_ms: int) -> Script[Attempt]:
    """A try before it is counted. Raises TooManyTries where a window is used up, at the cost of two reads."""
    network = network_of(address)
    person: Person | None = None
    stored: str | None = None
    budgets: tuple[Budget, ...] = (OF_ADDRESS, OF_NAME, OF_PAIR)
    if is_a_name:  # PostgreSQL refuses some other text, such as U+0000
        for knows_address, *row in (yield _TRIED, (name, network, now_ms - ADDRESS_KNOWN_MS)):
            person = read_person(row)
            stored = None if person.disabled_at_ms is not None else row[PASSWORD_AT]
            budgets = (OF_ADDRESS, OF_PAIR) if knows_address else budgets
    windows = {subject_of(budget, name, network): budget for budget in budgets}
    for subject, tries, opened_ms in (yield _WINDOWS, (tuple(windows) * 3)[:3]):
        budget = windows[subject]
        if tries >= budget.tries and abs(now_ms - opened_ms) < budget.window_ms:
            raise _too_many(budget, opened_ms, now_ms)
    return Attempt(person, stored, network, tuple((subject, 0) for subject in windows))


def take(attempt: Attempt, now_ms: int) -> Script[Attempt]:
    """Count a try. Raises TooManyTries, so that the transaction counts nothing.

    Windows are locked in this order by every transaction.
    """
    taken = []
    for subject, _ in attempt.taken:
        budget = BUDGETS[subject.partition(" ")[0]]
        ((tries, opened_ms),) = yield _TAKE, (subject, now_ms, budget.window_ms)
        if tries > budget.tries:
            raise _too_many(budget, opened_ms, now_ms)
        taken.append((subject, opened_ms))
    return replace(attempt, taken=tuple(taken))


def _too_many(budget: Budget, opened_ms: int, now_ms: int) -> TooManyTries:
    return TooManyTries(opened_ms + budget.window_ms - now_ms)


def clear(attempt: Attempt, person_id: int, now_ms: int) -> Script[None]:
    """After a right password: the pair starts anew; the other windows get the try back."""
    *others, (own, _) = attempt.taken
    for subject, opened_ms in others:
        yield _GIVE_BACK, (subject, opened_ms)
    yield _CLEAR, (own,)
    yield from know_address(person_id, attempt.network, now_ms)


def know_address(person_id: int, network: str, now_ms: int) -> Script[None]:
    """The person has signed in from there."""
    yield _KNOW, (person_id, network, now_ms)


async def purge_tries(database: Database, now_ms: int) -> None:
    """Delete windows that are over, 1,000 in each transaction, and addresses unused for long."""

    def delete() -> Script[int]:
        return len((yield _PURGE, (now_ms,)))

    def forget() -> Script[None]:
        for known in _PURGE_KNOWN:
            yield known, (now_ms,)

    while await database.write(delete) == _PURGE_AT_A_TIME:
        pass
    await database.write(forget)
