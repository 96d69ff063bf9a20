"""`petstore db copy`: everything arrives with its identifier, or nothing does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from petstore.core.deliverers import OwnedWebhook, Settled
from petstore.core.errors import EventsGone
from petstore.core.events import Event, EventQuery, read_event_id
from petstore.core.idempotency import IdempotencyKey
from petstore.core.limits.bans import BanState
from petstore.core.limits.counters import LimiterState
from petstore.core.limits.plans import FREE, PRO
from petstore.core.limits.usage import DailyUsage, UsageChanges
from petstore.core.pets import NewPet
from petstore.core.secrets_cipher import SecretsCipher
from petstore.core.webhooks import DeliveryAttempt, NewWebhook, Repetition, WebhookHealth, mint
from petstore.storage.postgres import copying as postgres
from petstore.transactions.rows import TABLES
from petstore.wiring.administration import Store
from tests.cli.conftest import Cli
from tests.support.backends import make_file
from tests.support.cases import every_case
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR
from tests.support.postgres import fresh_database, run
from tests.support.windows import used_of


@pytest.fixture
def server() -> Iterator[str]:
    """An empty PostgreSQL database."""
    with fresh_database() as url:
        yield url


async def fill(store: Store) -> None:
    """Something in every table, and animals with every kind of name and number."""
    for number, name in enumerate(("Rex", "  Ω \u2028 ", "'; DROP TABLE pets; --", "\\N", "🐈" * 255)):
        await store.pets.add(
            NewPet(name, (-1) ** number * (2**63 - 1)), ACTOR, IdempotencyKey(1, f"key-{number}")
        )
    await store.counters.save(
        LimiterState(
            {1: used_of((60_000, 7), (20_000, 11))},
            {1: BanState(1, 2, 3, 4, 5, 6, 7, 8)},
        ),
        UsageChanges({(1, 20_000): DailyUsage(20_000, 11, 2, 3)}, {1: 70_000}),
    )
    await deliver_one_of_two(store)
    await mail_one_of_two(store)


async def mail_one_of_two(store: Store) -> None:
    """A contact; the mail of one fact waits, and another fact is in none yet."""
    await store.notifications.gather()
    await store.contacts.add("account", "shop", "shop@example.com", ACTOR)
    for plan in (FREE, PRO):
        await store.notifications.gather()
        await store.accounts.set_plan("shop", plan, ACTOR)


async def deliver_one_of_two(store: Store) -> None:
    """A webhook whose first event has arrived, and whose second one failed and is to be sent again."""
    secrets = SecretsCipher().encrypt([mint()])
    hook, _, _ = await store.webhooks.create(1, 1, NewWebhook("https://shop.example/hook"), secrets, ACTOR)
    await store.webhooks.rotate(hook.id, ACTOR, lambda text, _: text)  # an entry that is not an event
    for name in ("one", "two", "three"):
        await store.pets.add(NewPet(name, 1), ACTOR)
    await store.pets.remove(8, ACTOR)
    webhook = await started(store, hook.id)
    page = await store.events.page(EventQuery(2, 1, after=webhook.after))
    failed, named = page.events[1], read_event_id(page.events[1].id)
    assert named is not None
    tries = [
        DeliveryAttempt(page.events[0].id, "pet.created", 1, 2, 200, None, "ok"),
        DeliveryAttempt(failed.id, failed.type, 3, 4, None, "Nobody answered.", "", 5),
    ]
    found = Settled(page.after, WebhookHealth(1, 3, 4), tries, [Repetition(5, *named, 1)], [])
    assert await store.deliverers.settle("deliverer", webhook, found)


async def started(store: Store, webhook_id: int) -> OwnedWebhook:
    """A webhook, once a deliverer has it."""
    await store.deliverers.claim("deliverer", [], is_alone=True)
    return {each.id: each for each in (await store.deliverers.owned("deliverer")).webhooks}[webhook_id]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A store with something in every table; the animals with the highest identifiers are gone again."""
    cli = Cli(tmp_path_factory.mktemp("filled"), ManualClock())
    make_file(cli.database)
    cli.ok("accounts", "add", "shop", "--plan", "pro")
    cli.issue("shop")
    cli.issue("shop", "--expires", "30d", "--label", "second")
    cli.with_store(fill)
    cli.ok("pets", "set", "1", "--status", "sold", "--price", "12.50", "--note", "Shy.")
    outside = apsw.Connection(str(cli.database))
    outside.execute(
        "DELETE FROM pets WHERE id = 5; INSERT INTO categories VALUES (-7, 'Cats');"
        "INSERT INTO stock_columns VALUES ('tier', '{\"tier\":\"name\"}', 1);"
        "INSERT INTO pet_sources VALUES ('chip-1', 1);"
        "INSERT INTO people (name, role, password, created_at_ms) VALUES ('anna', 'staff', 'hash', 1);"
        "INSERT INTO orders (account_id, pet_id, status, created_at_ms, reference, comment)"
        " VALUES (1, 1, 'delivered', 1, 'PO-7', 'Friday');"
        "INSERT INTO customers VALUES (1, 'Anna', 'anna@example.com', '1234', 'Berg 1', 'Calls');"
        "INSERT INTO facts VALUES (60000, 'key.banned', 1)"
    )
    outside.close()
    return cli.database.read_bytes()


@pytest.fixture
def shop(cli: Cli, filled: bytes) -> Cli:
    """That store, of one test alone."""
    cli.database.write_bytes(filled)
    return cli


def rows_of(url: str, table: str) -> list[tuple[Any, ...]]:
    """A table as an outside program sees it."""
    (found,) = [each for each in TABLES if each.name == table]
    return [
        tuple(row)
        for row in run(url, f"SELECT {', '.join(found.columns)} FROM {table} ORDER BY {found.order}")
    ]


def copy(cli: Cli, target: str) -> tuple[str, ...]:
    """The command that copies the store."""
    return "db", "copy", f"sqlite:///{cli.database}", target


class TestCopied:
    """A store that was moved."""

    def test_every_row_of_every_table(self, shop: Cli, server: str) -> None:
        """The copy has every row as it was, with its identifier; the printed counts are those of its rows."""
        printed = shop.json(*copy(shop, server))
        outside = apsw.Connection(str(shop.database))
        for table in TABLES:
            columns = ", ".join(table.columns)
            rows = list(outside.execute(f"SELECT {columns} FROM {table.name} ORDER BY {table.order}"))
            assert rows, f"{table.name} has no rows: the test would show nothing"
            assert rows_of(server, table.name) == rows
            assert {"table": table.name, "rows": len(rows)}.items() <= printed.pop(0).items()
        assert printed == []

    def test_it_goes_on_where_it_was(self, shop: Cli, server: str) -> None:
        """A key works and what is used stays used. A retry after the move creates nothing. The animal with
        the last identifier was deleted: that identifier is not given again."""
        secret, key_id = shop.issue("shop")
        before, used = shop.json("keys", "check", stdin=secret), shop.json("usage", "shop")
        shop.ok(*copy(shop, server))
        shop.settings["PETSTORE_DATABASE_URL"] = server
        assert shop.json("keys", "check", stdin=secret) == before
        assert shop.json("usage", "shop") == used

        async def retry(store: Store) -> Any:
            return await store.pets.add(NewPet("Rex", 2**63 - 1), ACTOR, IdempotencyKey(1, "key-0"))

        created = shop.with_store(retry)
        assert (created.pet.id, created.replayed) == (1, True)
        assert shop.json("pets", "add", "Next", "--category", "1")["id"] == 9
        assert shop.json("accounts", "add", "next", "--plan", "free")["id"] == 2
        assert shop.issue("next")[1] == key_id + 1

    def test_an_empty_store(self, empty: Cli, server: str) -> None:
        """Zero rows everywhere is a copy too, and may be repeated. People read a table on standard output,
        and what to do next on standard error."""
        assert {table["rows"] for table in empty.json(*copy(empty, server))} == {0}
        result = empty.run(*copy(empty, server))
        assert result.exit_code == 0
        assert result.stdout.splitlines()[0].split() == ["TABLE", "ROWS", "SHA-256"]
        assert "Set PETSTORE_DATABASE_URL" in result.stderr


class TestRefused:
    """Nothing is written."""

    def test_a_target_with_something_in_it(self, shop: Cli, server: str) -> None:
        """It belongs to another store."""
        shop.ok(*copy(shop, server))
        message = shop.refused(1, *copy(shop, server))
        assert "The target is not empty: there are rows in pets" in message

    def test_a_source_that_is_served(self, shop: Cli, server: str) -> None:
        """What it accepts afterwards would be lost."""
        with shop.hold():
            message = shop.refused(1, *copy(shop, server))
        assert "stop it first, or name another database with FROM." in message

    def test_a_source_that_is_not_there(self, cli: Cli, server: str) -> None:
        """No empty store is made of a typing error."""
        message = cli.refused(1, "db", "copy", "sqlite:///absent.db", server)
        assert "There is no database absent.db" in message

    def test_a_source_that_is_damaged(self, shop: Cli, server: str) -> None:
        """Half of a store is none."""
        outside = apsw.Connection(str(shop.database))
        outside.execute("PRAGMA foreign_keys = OFF; DELETE FROM accounts")
        outside.close()
        message = shop.refused(1, *copy(shop, server))
        assert "is damaged and was not copied" in message

    @every_case("pair", [("pg", "sqlite"), ("pg", "pg"), ("sqlite", "sqlite")])
    def test_another_pair_of_databases(self, empty: Cli, pair: tuple[str, str]) -> None:
        """Wrong usage: the one way there is, is told."""
        urls = {"pg": "postgresql://a/b", "sqlite": f"sqlite:///{empty.database}"}
        message = empty.refused(2, "db", "copy", *(urls[kind] for kind in pair))
        assert "from a SQLite file to PostgreSQL" in message

    def test_a_server_that_is_not_there(self, empty: Cli, tmp_path: Path) -> None:
        """Unavailable: to be tried again. The password is not shown."""
        url = f"postgresql://me:secret@/pets?host={tmp_path}"
        message = empty.refused(75, *copy(empty, url))
        assert "it can't be reached; check that it runs, and its address in TO." in message
        assert "secret" not in message

    @every_case(
        ("source", "target", "told"),
        [
            ("mysql://a/b", "postgresql://a/b", "FROM is not understood"),
            ("petstore.db", "postgresql://a:b/c", "TO is not understood"),
            ("petstore.db", "postgresql://a/b?sslrootcert=/none", "TO: /none can't be used as its"),
        ],
    )
    def test_an_address_that_is_none(
        self, empty: Cli, monkeypatch: pytest.MonkeyPatch, source: str, target: str, told: str
    ) -> None:
        """Wrong usage: what is at fault is an argument, and no setting."""
        monkeypatch.chdir(empty.folder)
        assert told in empty.refused(2, "db", "copy", source, target)

    def test_rows_that_arrive_changed(self, shop: Cli, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """The copy is read back before it is kept; what differs is not."""
        write = postgres.Target.write

        async def careless(self: postgres.Target, table: str, columns: Any, rows: Any) -> None:
            if table == "usage_days":
                rows = [(*row[:-1], row[-1] + 1) for row in rows]
            await write(self, table, columns, rows)

        monkeypatch.setattr(postgres.Target, "write", careless)
        message = shop.refused(75, *copy(shop, server))
        assert "The rows of usage_days differ" in message
        assert rows_of(server, "pets") == []
        assert rows_of(server, "accounts") == []
        # What moves a sequence is taken back by no end of a transaction.
        assert run(server, "SELECT last_value, is_called FROM pets_id_seq") == [(1, False)]


def test_no_table_is_forgotten(cli: Cli) -> None:
    """Every table with every column, but for a store's own notes, and what ends with its database."""
    cli.ok("db", "migrate")
    outside = apsw.Connection(str(cli.database))
    tables = {
        name: {column for (column,) in outside.execute("SELECT name FROM pragma_table_info(?)", (name,))}
        for (name,) in outside.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        )
    }
    outside.close()
    ends = (
        "sessions",
        "sign_in_links",
        "sign_in_tries",
        "known_addresses",
        "known_devices",
        "stock_uploads",
        "stock_upload_parts",
        "jobs",
        "refusals",
    )
    for own in ("versions", "schema_steps", "data_set", "deliverers", *ends):
        tables.pop(own)
    tables["webhooks"] -= {"owner", "revision"}  # of deliverers
    assert {table.name: set(table.columns) for table in TABLES} == tables


@pytest.mark.parametrize("is_whole", [True, False])
def test_the_copy_is_another_data_set_with_the_same_journal(shop: Cli, server: str, is_whole: bool) -> None:
    """No bookmark of the file goes on there; whether the journal begins with the first animal is copied."""
    with apsw.Connection(str(shop.database)) as outside:
        outside.execute("UPDATE data_set SET is_whole = ?", (is_whole,))
        [(identity,)] = outside.execute("SELECT identity FROM data_set").fetchall()
    shop.ok(*copy(shop, server))
    [(copied, beginning)] = run(server, "SELECT identity, is_whole FROM data_set")
    assert copied != identity
    assert beginning == is_whole


def test_webhooks_go_on_where_they_stopped(shop: Cli, server: str) -> None:
    """What the file had not delivered comes from the copy, in order, and then what happens there; what failed
    is sent again with the id that it had. Nothing that arrived comes again."""

    async def owed(store: Store) -> tuple[list[Event], list[Event | None]]:
        webhook = await started(store, 1)
        found = EventQuery(100, 1, after=webhook.after)
        try:
            page = await store.events.page(found)
        except EventsGone:
            after = await store.deliverers.go_on("deliverer", webhook, webhook.after)
            page = await store.events.page(EventQuery(100, 1, after=after))
        repeated = (await store.deliverers.owned("deliverer")).repetitions
        return page.events, [await store.deliverers.event(*each) for each in repeated]

    events, again = shop.with_store(owed)
    shop.ok(*copy(shop, server))
    shop.settings["PETSTORE_DATABASE_URL"] = server
    shop.ok("pets", "add", "Next", "--category", "1")
    copied, again_there = shop.with_store(owed)
    assert [(event.type, event.data) for event in copied[:-1]] == [(each.type, each.data) for each in events]
    assert len(events) >= 3
    assert copied[-1].data["name"] == "Next"
    assert again_there == again
    assert len(again) == 1


def test_mail_goes_on_where_it_stopped(shop: Cli, server: str) -> None:
    """What waits in the file, and what is in no mail there yet, is sent from the copy, each once; so is what
    happens there."""
    shop.ok(*copy(shop, server))
    shop.settings["PETSTORE_DATABASE_URL"] = server
    shop.ok("accounts", "set-plan", "shop", "--plan", "business")

    async def counts(store: Store) -> list[int]:
        await store.notifications.gather()
        return [count for (count,) in run(server, "SELECT count FROM mails ORDER BY id")]

    assert shop.with_store(counts) == [3]
    assert shop.with_store(counts) == [3]
