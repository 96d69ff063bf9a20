"""What the journal of every store says: one entry for each change, none without one, and how it is read."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from petstore.core.contacts import Subject
from petstore.core.customers import NOBODY, Customer
from petstore.core.durations import DAY_MS
from petstore.core.errors import NotFound, PetstoreError
from petstore.core.idempotency import IdempotencyKey
from petstore.core.journal import JournalPage, JournalQuery, ScanEnd, read_about
from petstore.core.limits.plans import FREE, PRO
from petstore.core.orders import NewOrder, OrderStatus
from petstore.core.people import Role
from petstore.core.pets import NewPet, PetChange, PetStatus
from petstore.core.webhooks import NewWebhook, WebhookChange
from petstore.storage.store import Store
from petstore.transactions.script import Repository
from petstore.transactions.store import Repositories
from tests.storage.contract.test_stock import run_import
from tests.support.backends import SharedData, through_pgbouncer_too
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR, Audit, entries, written

Work = Callable[[Store], Awaitable[object]]
REX = NewPet("Rex", 1)
SOLD = PetChange(status=PetStatus.SOLD)
KEY = IdempotencyKey(1, "key")
ANNA = Customer("Anna Berg", phone="1234")
REFERRED = NewOrder(2, reference="PO-4711", comment="By phone.")


def imports(store: Store, **names: str) -> Awaitable[object]:
    """A list of animals with these source keys and names."""
    return run_import(store, *((key, name, 1, None) for key, name in names.items()))


LINKS: list[str] = []


async def adds_anna(store: Store) -> None:
    LINKS.append((await store.people.add("anna", Role.STAFF, ACTOR)).token)


async def changes_password(store: Store) -> None:
    attempt = await store.sign_ins.take_attempt("anna", "::1")
    assert await store.sign_ins.change_password(attempt, "another hash", "::1")


HOOK = NewWebhook("https://shop.example/hook")


def creates_webhook(store: Store) -> Awaitable[object]:
    return store.webhooks.create(1, 2, HOOK, "secrets", ACTOR, IdempotencyKey(1, "hook"))


async def switches_by_token(store: Store) -> object:
    (contact,) = await store.contacts.of("account", 1)
    return await store.contacts.switch_by_token(contact.token, "plan.changed", is_on=True)


# What `contacts` take for one of the account, and for one of a person.
ITS: tuple[Subject, str, str, str] = ("account", "1", "shop@example.com", ACTOR)
HERS: tuple[Subject, str, str, str] = ("person", "anna", "anna@example.com", ACTOR)
OFF = ("plan.changed",)
TOKYO = ("anna", "Asia/Tokyo", ACTOR)

# Each line after the ones before: a method that changes something, what it does, the types of its entries.
# The second of two equal calls changes nothing.
WALK: list[tuple[str, Work, list[str]]] = [
    ("accounts.add", lambda s: s.accounts.add("shop", FREE, ACTOR), ["account.added"]),
    ("accounts.add", lambda s: s.accounts.add("other", FREE, ACTOR), ["account.added"]),
    ("accounts.add", lambda s: s.accounts.add("shop", FREE, ACTOR), []),
    ("accounts.set_plan", lambda s: s.accounts.set_plan("shop", PRO, ACTOR), ["account.plan_changed"]),
    ("accounts.set_plan", lambda s: s.accounts.set_plan("shop", PRO, ACTOR), []),
    ("customers.set", lambda s: s.customers.set("shop", ANNA, ACTOR), ["account.customer_changed"]),
    ("customers.set", lambda s: s.customers.set("shop", ANNA, ACTOR), []),
    ("customers.set", lambda s: s.customers.set("shop", NOBODY, ACTOR), ["account.customer_changed"]),
    ("customers.set", lambda s: s.customers.set("shop", ANNA, ACTOR), ["account.customer_changed"]),
    ("accounts.suspend", lambda s: s.accounts.suspend("shop", ACTOR), ["account.suspended"]),
    ("accounts.suspend", lambda s: s.accounts.suspend("shop", ACTOR), []),
    ("accounts.resume", lambda s: s.accounts.resume("shop", ACTOR), ["account.resumed"]),
    ("accounts.resume", lambda s: s.accounts.resume("shop", ACTOR), []),
    ("accounts.rename", lambda s: s.accounts.rename("shop", "store", ACTOR), ["account.renamed"]),
    ("accounts.rename", lambda s: s.accounts.rename("1", "store", ACTOR), []),
    ("accounts.rename", lambda s: s.accounts.rename("1", "other", ACTOR), []),
    ("keys.issue", lambda s: s.keys.issue("1", "test", ACTOR, label="till"), ["key.issued"]),
    ("keys.issue", lambda s: s.keys.issue("nobody", "test", ACTOR), []),
    ("keys.rotate", lambda s: s.keys.rotate(1, "test", 1_000, ACTOR), ["key.issued", "key.rotated"]),
    ("keys.pardon", lambda s: s.keys.pardon(1, ACTOR), ["key.unbanned"]),
    ("keys.revoke", lambda s: s.keys.revoke(1, ACTOR), ["key.revoked"]),
    ("keys.revoke", lambda s: s.keys.revoke(1, ACTOR), []),
    ("keys.rotate", lambda s: s.keys.rotate(1, "test", 1_000, ACTOR), []),
    ("pets.add", lambda s: s.pets.add(REX, ACTOR), ["pet.added"]),
    ("pets.add", lambda s: s.pets.add(NewPet('"\\ é', -1), ACTOR, KEY), ["pet.added"]),
    ("pets.add", lambda s: s.pets.add(NewPet('"\\ é', -1), ACTOR, KEY), []),
    ("pets.add", lambda s: s.pets.add(REX, ACTOR, KEY), []),
    ("pets.change", lambda s: s.pets.change(1, PetChange("Max", 2), ACTOR), ["pet.changed"]),
    ("pets.change", lambda s: s.pets.change(1, PetChange("Max", 2), ACTOR), []),
    ("orders.place", lambda s: s.orders.place(1, NewOrder(1), ACTOR, KEY), []),  # the animal's key
    ("orders.place", lambda s: s.orders.place(1, NewOrder(1), ACTOR), ["order.placed", "pet.changed"]),
    ("orders.place", lambda s: s.orders.place(1, NewOrder(1), ACTOR), []),
    ("pets.change", lambda s: s.pets.change(1, SOLD, ACTOR), []),
    ("pets.remove", lambda s: s.pets.remove(1, ACTOR), []),
    ("orders.change", lambda s: s.orders.change(1, ACTOR, ship_date_ms=5), ["order.changed"]),
    ("orders.change", lambda s: s.orders.change(1, ACTOR, ship_date_ms=5), []),
    ("orders.change", lambda s: s.orders.change(1, ACTOR, status=OrderStatus.APPROVED), ["order.approved"]),
    (
        "orders.change",
        lambda s: s.orders.change(1, ACTOR, status=OrderStatus.DELIVERED),
        ["order.delivered", "pet.changed"],
    ),
    ("orders.change", lambda s: s.orders.change(1, ACTOR, status=OrderStatus.CANCELLED), []),
    ("orders.comment", lambda s: s.orders.comment(1, "Comes on Friday.", ACTOR), ["order.changed"]),
    ("orders.comment", lambda s: s.orders.comment(1, "Comes on Friday.", ACTOR), []),
    ("orders.comment", lambda s: s.orders.comment(1, None, ACTOR), ["order.changed"]),
    ("orders.place", lambda s: s.orders.place(1, REFERRED, ACTOR), ["order.placed", "pet.changed"]),
    (
        "orders.change",
        lambda s: s.orders.change(2, ACTOR, status=OrderStatus.CANCELLED),
        ["order.cancelled", "pet.changed"],
    ),
    ("pets.change", lambda s: s.pets.change(9, SOLD, ACTOR), []),
    ("pets.remove", lambda s: s.pets.remove(2, ACTOR), ["pet.removed"]),
    ("pets.remove", lambda s: s.pets.remove(2, ACTOR), []),
    ("stock.importing", lambda s: imports(s, A="Tom", B='"'), ["pet.added", "pet.added"]),
    ("stock.importing", lambda s: imports(s, A="Tom", B='"'), []),
    ("stock.importing", lambda s: imports(s, A="Tim", B='"'), ["pet.changed"]),
    ("categories.name", lambda s: s.categories.name(-7, "Dogs", ACTOR), ["category.named"]),
    ("categories.name", lambda s: s.categories.name(-7, "Dogs", ACTOR), []),
    ("categories.name", lambda s: s.categories.name(-7, "Cats", ACTOR), ["category.named"]),
    ("categories.unname", lambda s: s.categories.unname(-7, ACTOR), ["category.named"]),
    ("categories.unname", lambda s: s.categories.unname(-7, ACTOR), []),
    ("webhooks.create", creates_webhook, ["webhook.added"]),
    ("webhooks.create", creates_webhook, []),
    (
        "webhooks.change",
        lambda s: s.webhooks.change(1, WebhookChange(types=("pet.*",)), ACTOR),
        ["webhook.changed"],
    ),
    ("webhooks.change", lambda s: s.webhooks.change(1, WebhookChange(types=("pet.*", "pet.*")), ACTOR), []),
    ("webhooks.change", lambda s: s.webhooks.change(1, WebhookChange(after="now"), ACTOR), ["webhook.moved"]),
    (
        "webhooks.change",
        lambda s: s.webhooks.change(1, WebhookChange(enabled=False), ACTOR),
        ["webhook.disabled"],
    ),
    ("webhooks.change", lambda s: s.webhooks.change(1, WebhookChange(enabled=False), ACTOR), []),
    (
        "webhooks.change",
        lambda s: s.webhooks.change(1, WebhookChange(enabled=True), ACTOR),
        ["webhook.enabled"],
    ),
    ("webhooks.change", lambda s: s.webhooks.change(1, WebhookChange(enabled=True), ACTOR), []),
    ("webhooks.rotate", lambda s: s.webhooks.rotate(1, ACTOR, lambda *_: "others"), ["webhook.rotated"]),
    ("webhooks.remove", lambda s: s.webhooks.remove(1, ACTOR), ["webhook.removed"]),
    ("webhooks.remove", lambda s: s.webhooks.remove(1, ACTOR), []),
    ("contacts.add", lambda s: s.contacts.add(*ITS), ["account.contact_added"]),
    ("contacts.add", lambda s: s.contacts.add(*ITS), []),
    ("contacts.switch", lambda s: s.contacts.switch(*ITS, off=OFF), ["account.contact_changed"]),
    ("contacts.switch", lambda s: s.contacts.switch(*ITS, off=OFF), []),
    ("contacts.switch_by_token", switches_by_token, ["account.contact_changed"]),
    ("contacts.switch_by_token", switches_by_token, []),
    ("contacts.remove", lambda s: s.contacts.remove(*ITS), ["account.contact_removed"]),
    ("contacts.remove", lambda s: s.contacts.remove(*ITS), []),
    ("accounts.close", lambda s: s.accounts.close("1", ACTOR), ["account.closed", "key.revoked"]),
    ("accounts.close", lambda s: s.accounts.close("1", ACTOR), []),
    ("people.add", adds_anna, ["person.added"]),
    ("people.add", adds_anna, []),
    ("contacts.add", lambda s: s.contacts.add(*HERS), ["person.contact_added"]),
    ("contacts.remove", lambda s: s.contacts.remove(*HERS), ["person.contact_removed"]),
    ("people.set_role", lambda s: s.people.set_role("anna", Role.OPERATOR, ACTOR), ["person.role_changed"]),
    ("people.set_role", lambda s: s.people.set_role("anna", Role.OPERATOR, ACTOR), []),
    ("people.set_time_zone", lambda s: s.people.set_time_zone(*TOKYO), ["person.changed"]),
    ("people.set_time_zone", lambda s: s.people.set_time_zone(*TOKYO), []),
    ("sign_ins.redeem", lambda s: s.sign_ins.redeem(LINKS[-1], "hash", "::1"), ["person.password_set"]),
    ("sign_ins.redeem", lambda s: s.sign_ins.redeem(LINKS[-1], "hash", "::1"), []),
    ("sign_ins.change_password", changes_password, ["person.password_set"]),
    ("people.reset", lambda s: s.people.reset("anna", ACTOR), ["person.reset"]),
    ("people.disable", lambda s: s.people.disable("anna", ACTOR), []),
    ("people.add", lambda s: s.people.add("ben", Role.OPERATOR, ACTOR), ["person.added"]),
    ("people.disable", lambda s: s.people.disable("anna", ACTOR), ["person.disabled"]),
    ("people.disable", lambda s: s.people.disable("anna", ACTOR), []),
    ("people.enable", lambda s: s.people.enable("anna", ACTOR), ["person.enabled"]),
    ("people.enable", lambda s: s.people.enable("anna", ACTOR), []),
]
READS = {
    # A stamp has no entry, other data have one: test_stages.py, test_staging.py.
    *("stages.foreign_keys", "stages.stamp", "staging.cut", "staging.fill"),
    *("pets.find_by_name", "pets.open_order", "accounts.names"),
    *("pets.page", "pets.get", "stock.source_keys", "orders.page", "orders.get", "accounts.find"),
    *("pets.count", "orders.count"),
    *(
        "accounts.all",
        "customers.of",
        "pets.get_or_none",
        "accounts.page",
        "accounts.count",
        "keys.find_caller",
        "keys.of_account",
        "keys.get",
        "keys.by_digest",
        "journal.page",
    ),
    *(
        "events.page",
        "events.newest",
        "events.latest",
        "journal.beside",
        "events.summary_after",
        "deliveries.receivers",
        "categories.all",
        "usage.report",
        "usage.days",
        "usage.bans",
        "usage.bans_of",
        "usage.deprecated_callers",
        "billing.accounts",
    ),
    *("webhooks.page", "webhooks.failing", "deliverers.states", "notifications.mails"),
    # A session is not a change of the store.
    *("people.all", "people.find", "people.names", "sign_ins.sessions"),
    *("sign_ins.take_attempt", "sign_ins.accept", "sign_ins.link"),
    *("sign_ins.session", "sign_ins.sessions_of", "sign_ins.end_session", "sign_ins.end_session_of"),
    *("sign_ins.end_sessions", "orders.sale_of", "totals.count", "pets.look_up", "pets.public_page"),
    # Nor is a list that waits: `stock.importing` stores it.
    *("uploads.add", "uploads.get", "uploads.recent", "uploads.chunks", "uploads.ask", "uploads.begin"),
    *("uploads.end", "uploads.discard", "uploads.columns", "uploads.adopt", "uploads.purge"),
    # It writes an entry, and changes no object: test_events.py.
    "events.note_restore",
    # They write entries of facts, and change no object: test_facts.py.
    *("facts.state", "facts.record_counted", "facts.record_timed"),
    *(
        "webhooks.of_account",
        "webhooks.of_key",
        "webhooks.get",
        "deliveries.attempts",
        "deliveries.first_attempt",
    ),
    # It writes an entry, and changes no object: test_imports.py.
    "uploads.save_column_meanings",
    # What they change is an import's, with its entries: test_list_reverts.py.
    *("list_reverts.get", "list_reverts.of_upload", "list_reverts.ask", "list_reverts.refuse"),
    # They write an entry, and change no object: test_webhooks.py.
    *("deliveries.test", "deliveries.redeliver"),
    # A delivery changes no object; `settle` writes the entry when it disables a webhook.
    *(
        "deliverers.is_needed",
        "deliverers.claim",
        "deliverers.owned",
        "deliverers.release",
        "deliverers.event",
    ),
    *("deliverers.settle", "deliverers.move", "deliverers.go_on"),
    *("contacts.of", "contacts.of_token", "contacts.owner"),
    # Mail changes no object, but what is said of its contact: tests/background/test_notifier.py.
    *("notifications.gather", "notifications.next", "notifications.note", "notifications.waiting"),
    *("jobs.take", "jobs.renew", "jobs.release", "jobs.finish"),
    # What leaves is in no entry.
    *(
        "retention.last_before",
        "retention.remove_entries",
        "retention.remove",
        "retention.remove_webhook",
    ),
    # A step writes the index alone: test_search.py.
    *("search.find", "search.step", "events.entries", "accounts.uses", "accounts.get", "keys.ending"),
    # Requests that changed nothing.
    *("refusals.add", "refusals.last"),
}


@through_pgbouncer_too
async def test_each_change_has_one_entry_and_nothing_else_has_any(backend: SharedData) -> None:
    """I22: all methods one after the other: entries are written for exactly the objects that changed, one
    each; repetitions, refusals and what changes nothing write none."""
    store = backend.open()
    audit = Audit(backend.execute)
    for name, work, expected in WALK:
        try:
            await work(store)
        except PetstoreError:
            assert expected == [], name
        assert (name, audit.check()) == (name, expected)


async def test_the_walk_knows_every_method(backend: SharedData) -> None:
    """A new method of a repository is put into the walk, or among those that only read."""
    declared = inspect.get_annotations(Repositories.__init__, eval_str=True)
    hints = {name: declared.get(name, type(part)) for name, part in vars(backend.open()).items()}
    methods = {
        f"{name}.{method}"
        for name, hint in hints.items()
        if hint.__name__.endswith("Repository") or issubclass(hint, Repository)
        for method, _ in inspect.getmembers(hint, inspect.isfunction)
        if not method.startswith("_")
    }
    assert methods == {name for name, _, _ in WALK} | READS


async def test_what_entries_of_keys_have(store: Store, clock: ManualClock) -> None:
    """Account, label, level and times, before and after; no key's text and no part of it."""
    await store.accounts.add("shop", FREE, ACTOR)
    ends_ms = clock.now_ms() + 1_000
    issued = await store.keys.issue("shop", "test", ACTOR, label="till", expires_at_ms=ends_ms)
    await store.keys.revoke(1, "cli:anna")
    found = await entries(store, "key:1")
    assert [(entry.actor, entry.type, entry.before, entry.after) for entry in found] == [
        (
            ACTOR,
            "key.issued",
            None,
            {"accountId": 1, "label": "till", "access": "write", "expiresAt": "2027-01-15T08:00:31.000Z"},
        ),
        ("cli:anna", "key.revoked", {"revokedAt": None}, {"revokedAt": "2027-01-15T08:00:30.000Z"}),
    ]
    text = str(await entries(store))
    assert not any(issued.secret[at : at + 4] in text for at in range(10, len(issued.secret) - 3))


class TestPage:
    """What an operator reads."""

    async def test_newest_first_and_on_from_the_last(self, store: Store) -> None:
        """Each page says whether there is more; none is repeated."""
        for _ in range(5):
            await store.pets.add(REX, ACTOR)
        first = await store.journal.page(JournalQuery(3))
        assert ([entry.subject_id for entry in first.entries], first.has_more) == ([5, 4, 3], True)
        rest = await store.journal.page(JournalQuery(3, before_id=first.entries[-1].id))
        assert ([entry.subject_id for entry in rest.entries], rest.has_more) == ([2, 1], False)

    async def test_an_actor_or_its_beginning(self, store: Store) -> None:
        """Up to a colon or a slash: `cli:ann` is not `cli:anna`."""
        for actor in ("cli:ann", "cli:anna", "api:shop/key 1", "api:shop/key 12", "api:shop2/key 1"):
            await store.pets.add(REX, actor)

        async def by(actor: str) -> list[int]:
            page = await store.journal.page(JournalQuery(9, actor=actor))
            return [entry.subject_id for entry in page.entries]

        assert await by("cli") == [2, 1]
        assert await by("cli:ann") == [1]
        assert await by("api:shop") == [4, 3]
        assert await by("api:shop/key 1") == [3]
        assert await by("api") == [5, 4, 3]
        assert await by("anna") == [2]
        assert await by("shop") == [4, 3]
        assert await by("shop2/key 1") == [5]
        assert await by("%") == await by("") == await by("é" * 99) == []

    async def test_all_filters_and_the_millisecond_of_a_beginning_combine(
        self, store: Store, clock: ManualClock
    ) -> None:
        """An entry of exactly that moment is in the answer."""
        await store.pets.add(REX, ACTOR)
        clock.advance(1)
        await store.pets.change(1, SOLD, "cli:anna")
        since = clock.now_ms()
        for moment, expected in ((since, [2]), (since + 1, [])):
            query = JournalQuery(9, read_about("pet:1"), "cli:anna", moment, before_id=9)
            assert [entry.id for entry in (await store.journal.page(query)).entries] == expected

    async def test_a_search_reads_so_many_entries_and_says_where_it_stopped(
        self, store: Store, clock: ManualClock
    ) -> None:
        """A search by an actor: the bound, the position and its time, the end, and a full page, which needs
        none."""
        for turn in range(7):
            await store.pets.add(REX, "cli:anna" if turn in {0, 3} else ACTOR)
            clock.advance(1)
        query = JournalQuery(5, actor="cli:anna", scan_max=3)
        first = await store.journal.page(query)
        assert (first.entries, first.has_more) == ([], False)
        assert first.scan_end == ScanEnd(5, clock.now_ms() - 3_000)
        second = await store.journal.page(replace(query, before_id=5))
        assert [entry.id for entry in second.entries] == [4]
        assert second.scan_end == ScanEnd(2, clock.now_ms() - 6_000)
        third = await store.journal.page(replace(query, before_id=2))
        assert ([entry.id for entry in third.entries], third.scan_end) == ([1], None)
        full = await store.journal.page(replace(query, limit=1, scan_max=7))
        assert ([entry.id for entry in full.entries], full.has_more, full.scan_end) == ([4], True, None)

    async def test_a_search_about_one_object_reads_only_its_entries(self, store: Store) -> None:
        """The bound counts the animal's own entries."""
        for _ in range(4):
            await store.pets.add(REX, ACTOR)
        query = JournalQuery(5, read_about("pet:1"), actor="cli:anna", scan_max=2)
        assert await store.journal.page(query) == JournalPage([], has_more=False)

    async def test_between_two_moments_no_other_days_are_read(self, store: Store, clock: ManualClock) -> None:
        """The bound begins at the last moment, which is excluded, and the first one ends the search."""
        began = clock.now_ms()
        for _ in range(10):
            await store.pets.add(REX, ACTOR)
            clock.advance(86_400)
        query = JournalQuery(9, since_ms=began + 2 * DAY_MS, until_ms=began + 5 * DAY_MS, scan_max=5)
        page = await store.journal.page(query)
        assert ([entry.id for entry in page.entries], page.scan_end) == ([5, 4, 3], None)
        rest = await store.journal.page(replace(query, before_id=4))
        assert ([entry.id for entry in rest.entries], rest.scan_end) == ([3], None)

    async def test_an_account_of_many_keys_is_searched_with_the_bound(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The entries are those of the account's keys, by name as by id; of a journal without bound not all
        are read."""
        await store.accounts.add("shop", FREE, ACTOR)
        await store.accounts.add("other", FREE, ACTOR)
        for name in ("shop", "other", "shop"):
            await store.keys.issue(name, "test", ACTOR)
        query = JournalQuery(9, read_about("account:shop"))
        by_keys = await store.journal.page(query)
        assert [entry.about for entry in by_keys.entries] == ["key:3", "key:1", "account:1"]
        assert await written(store, "account:1") == await written(store, "account:shop")
        with pytest.raises(NotFound):
            await written(store, "account:nobody")
        newest = await store.journal.page(replace(query, limit=1))
        assert (newest.entries, newest.has_more) == (by_keys.entries[:1], True)
        monkeypatch.setattr("petstore.transactions.journal._KEYS_MAX", 1)
        assert await store.journal.page(query) == by_keys
        bounded = await store.journal.page(replace(query, scan_max=2))
        assert bounded.scan_end is not None
        assert bounded.entries == by_keys.entries[: len(bounded.entries)]
