"""What the statements of a page are like in SQLite: bounded by an index, nothing sorted."""

from __future__ import annotations

import contextlib
import itertools
import re
from pathlib import Path
from typing import Any

import apsw
import pytest
from msgspec.structs import replace

from petstore.core.accounts import STATES, AccountQuery
from petstore.core.durations import HOUR_MS
from petstore.core.journal import JournalQuery
from petstore.core.orders import OPEN, OrderQuery, OrderStatus
from petstore.core.pets import PetQuery, PetStatus
from petstore.storage.options import SqliteOptions
from petstore.storage.sqlite.connection import open_reader
from petstore.storage.sqlite.database import run
from petstore.storage.sqlite.schema import prepare
from petstore.transactions import orders
from petstore.transactions.account_pages import page_of_accounts
from petstore.transactions.deliverers import ANY, FURTHEST_BEHIND, NEXT_REPETITIONS, PRUNE
from petstore.transactions.deliveries import AHEAD, ATTEMPTS, TEST
from petstore.transactions.journal import page_of_journal
from petstore.transactions.pets import PAGE_BY_STATUS, after_every_name, by_name, page_of
from petstore.transactions.retention import PARTS, REMOVED_WEBHOOK
from petstore.transactions.script import Statement
from petstore.transactions.usage import BANS_IN_FORCE
from petstore.transactions.webhooks import FAILING, OF_ACCOUNT, OF_KEY
from tests.support.cases import every_case


@pytest.fixture
def connection(tmp_path: Path) -> apsw.Connection:
    """Prepare a database, and connect to it as the service does."""
    path = str(tmp_path / "pets.db")
    prepare(path, SqliteOptions())
    return open_reader(path, 1_000)


def steps(connection: apsw.Connection, sql: str, arguments: tuple[object, ...]) -> list[str]:
    """The plan, without the steps that only join others."""
    rows = connection.execute(f"EXPLAIN QUERY PLAN {sql}", arguments)
    joints = ("MERGE (UNION ALL)", "LEFT", "RIGHT")
    return [row[3] for row in rows if row[3] not in joints]


QUERIES = [
    PetQuery(20, status, None, 7, category, newest)
    for status, category, newest in itertools.product([None, *PetStatus], [None, 1], [False, True])
]


@every_case("query", QUERIES)
def test_a_page_is_a_walk_along_an_index(connection: apsw.Connection, query: PetQuery) -> None:
    """The walk begins at the page's first animal; a category without a status is three walks, merged as they
    go."""
    statement, arguments = page_of(query)
    order = "<" if query.newest_first else ">"
    index, walks = f"INTEGER PRIMARY KEY (rowid{order}?)", 1
    if query.category_id is not None:
        index = f"INDEX pets_by_category (category_id=? AND status=? AND rowid{order}?)"
        walks = 1 if query.status is not None else 3
    elif query.status is not None:
        index = f"INDEX pets_by_status (status=? AND rowid{order}?)"
    assert steps(connection, statement.sqlite, arguments) == [f"SEARCH pets USING {index}"] * walks


@every_case("query", QUERIES)
def test_identifiers_are_the_way_in(connection: apsw.Connection, query: PetQuery) -> None:
    """Whatever else is filtered by."""
    statement, arguments = page_of(replace(query, ids=(1, 2, 3)))
    found = steps(connection, statement.sqlite, arguments)
    assert found == ["SEARCH pets USING INTEGER PRIMARY KEY (rowid=?)"]


@every_case("newest_first", [False, True])
@every_case("account_id", [None, 1])
@every_case(("status", "is_open"), [(None, False), (OrderStatus.PLACED, False), (None, True)])
def test_a_page_of_orders_is_a_walk_along_an_index(
    connection: apsw.Connection,
    account_id: int | None,
    status: OrderStatus | None,
    is_open: bool,
    newest_first: bool,
) -> None:
    """A page of orders is a walk along an index; several states are a walk for each, merged as they go."""
    query = OrderQuery(account_id, 50, status, None, 7, newest_first, is_open)
    statement, arguments = orders.page_of(query)
    rowid = f"rowid{'<' if newest_first else '>'}?)"
    index = {
        (False, False): f"INTEGER PRIMARY KEY ({rowid}",
        (True, False): f"INDEX orders_by_account (account_id=? AND {rowid}",
        (False, True): f"INDEX orders_by_status (status=? AND {rowid}",
        (True, True): f"INDEX orders_by_account_and_status (account_id=? AND status=? AND {rowid}",
    }[account_id is not None, is_open or status is not None]
    assert steps(connection, statement.sqlite, arguments) == [f"SEARCH orders USING {index}"] * (
        len(OPEN) if is_open else 1
    )


@every_case("plan", [None, "pro"])
@every_case("state", [None, *STATES])
@every_case("after", ["", "shop-7"])
def test_a_page_of_accounts_begins_where_the_last_one_ended(
    connection: apsw.Connection, after: str, state: str | None, plan: str | None
) -> None:
    """Each statement searches an index from the name on, and nothing is sorted; the last one, which reads the
    page, the narrowest index that there is."""
    script = page_of_accounts(10**12, AccountQuery(50, "sh", state, plan, after))
    narrowest = "by_plan" if plan else state if state in ("suspended", "closed") else "by_name"
    used = []
    with contextlib.suppress(StopIteration):
        statement, arguments = next(script)
        while True:
            first, *others = steps(connection, statement.sqlite, arguments)
            found = re.fullmatch(
                r"SEARCH accounts USING .*INDEX accounts_(\w+) \(.*name>\? AND name<\?\)", first
            )
            assert found, first
            used.append(found[1])
            assert others in ([], ["SEARCH account_windows USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN"])
            statement, arguments = script.send([])
    assert used in ([narrowest], ["by_name", narrowest])


BY_TIME = "INDEX webhook_repetitions_by_time (webhook_id=?"
OF_ITS_OWN = "webhook_tries_by_webhook (webhook_id=? AND id"
WALKS = [
    (PAGE_BY_STATUS, (7, 21, "sold"), ["SEARCH pets USING INDEX pets_by_status (status=? AND rowid>?)"]),
    (
        by_name(51),  # the rest of one name from an identifier on, and the names beyond
        ("rex", 7, after_every_name("re")),
        [
            "SEARCH pets USING INDEX pets_by_name (name=? AND rowid>?)",
            "SEARCH pets USING INDEX pets_by_name (name>? AND name<?)",
        ],
    ),
    (ATTEMPTS, (1, 2**62, 21), [f"SEARCH webhook_tries USING INDEX {OF_ITS_OWN}<?)"]),
    (PRUNE, (1,), ["SEARCH webhook_tries USING INDEX webhook_successes (webhook_id=? AND id<?)"]),
    (TEST, (1, "evt_0f3a9c2b5d7e_1"), ["SEARCH webhook_tries USING INDEX webhook_tests (event_id=?)"]),
    (AHEAD, (1, "[5]"), [f"SEARCH webhook_repetitions USING COVERING {BY_TIME} AND at_ms=?)"]),
    (NEXT_REPETITIONS, ("a",), ["SCAN w", f"SEARCH r USING {BY_TIME} AND at_ms<?)"]),
    (REMOVED_WEBHOOK, (0,), ["SEARCH webhooks USING INDEX webhooks_removed (id>?)"]),
    (PARTS[0][0], (1, 2, 3), [f"SEARCH webhook_tries USING COVERING INDEX {OF_ITS_OWN}>?)"]),
    (PARTS[0][1], (1, 2, 3), [f"SEARCH webhook_tries USING INDEX {OF_ITS_OWN}>? AND id<?)"]),
    (PARTS[1][0], (1, 2, 3), [f"SEARCH webhook_repetitions USING COVERING {BY_TIME} AND at_ms>?)"]),
    (PARTS[1][1], (1, 2, 3), [f"SEARCH webhook_repetitions USING {BY_TIME} AND at_ms>? AND at_ms<?)"]),
    (BANS_IN_FORCE, (10**12, 0, 0, 50), ["SEARCH s USING INDEX key_standings_by_ban (banned_until_ms>?)"]),
    (FAILING, (5,), ["SEARCH w USING INDEX webhooks_failing (failing_since_ms>?)"]),
    (OF_ACCOUNT, (1,), ["SEARCH webhooks USING INDEX webhooks_by_account (account_id=?)"]),
    (OF_KEY, (1,), ["SEARCH webhooks USING INDEX webhooks_by_key (key_id=?)"]),
    (ANY, (), ["SCAN w USING INDEX webhooks_by_key"]),
    (FURTHEST_BEHIND, (), ["SCAN w USING INDEX webhooks_by_key"]),
]


@every_case(("statement", "arguments", "walks"), WALKS)
def test_what_others_have_is_not_read(
    connection: apsw.Connection, statement: Statement, arguments: tuple[object, ...], walks: list[str]
) -> None:
    """However many animals, tries, bans and removed webhooks there are. Only webhooks are sorted."""
    found = steps(connection, statement.sqlite, arguments)
    assert found[: len(walks)] == walks
    assert ("USE TEMP B-TREE FOR ORDER BY" in found) is (statement is FURTHEST_BEHIND)


def test_a_search_of_the_journal_reads_no_more_than_it_may(connection: apsw.Connection) -> None:
    """Wherever its time begins; the event loop waits for it."""
    with contextlib.closing(apsw.Connection(connection.filename)) as filling:
        filling.execute(
            "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 2000)"
            " INSERT INTO journal (at_ms, actor, subject, subject_id, action)"
            " SELECT n * 3600000, 'cli:anna', 'pet', n, 'removed' FROM n"
        )
    most = 0

    def note(traced: dict[str, Any]) -> None:
        nonlocal most
        most = max(most, traced["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"])

    connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, note)
    found = run(
        connection, page_of_journal(JournalQuery(5, actor="nobody", since_ms=HOUR_MS * 10, scan_max=10))
    )
    assert found.scan_end is not None
    assert found.scan_end.id == 1_991
    assert 0 < most < 1_000
