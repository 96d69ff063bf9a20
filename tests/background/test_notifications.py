"""Mails about what happens, to whom they go, and what they say: real facts, a real server."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from email.message import EmailMessage

import pytest

from petstore.background.facts import FactRecorder
from petstore.background.retention import remove_old
from petstore.core import notifications
from petstore.core.durations import DAY_MS, SECOND_MS
from petstore.core.limits.counters import LimiterState
from petstore.core.limits.plans import FREE, PRO
from petstore.core.limits.usage import UsageMeter
from petstore.core.notifications import BY_NAME, KINDS, SAID_MAX
from petstore.core.orders import NewOrder
from petstore.core.people import Role
from petstore.core.pets import NewPet
from petstore.core.uploads import UploadState
from petstore.core.webhooks import DisabledReason, WebhookChange
from petstore.storage.store import Store
from tests.background.post import Post, contact, recipients, words
from tests.storage.contract.test_facts import PER_DAY, SMALL, Service
from tests.support.backends import SharedData, of_each_store
from tests.support.clock import ManualClock
from tests.support.jobs import carry_out, keep_list, work
from tests.support.journal import ACTOR
from tests.support.mail import MailServer
from tests.support.webhooks import account, webhook

REMOVAL_AT_MS = int(datetime(2027, 12, 31, tzinfo=UTC).timestamp()) * SECOND_MS
LIST = b"sku,name,categoryId\r\nA,Rex,1\r\nB,Mia,1\r\n"


class World:
    """Accounts `small`, of ten requests a day, and `shop`, on the Free plan, each with a key and a contact of
    its name; `anna` is a person with one."""

    def __init__(self, store: Store, mail: MailServer, clock: ManualClock) -> None:
        self.store, self.mail, self.clock = store, mail, clock
        self.service = Service(store, clock)
        self.post = Post(store, mail, clock)
        self.keys: dict[str, str] = {}

    async def begin(self) -> None:
        await self.store.accounts.add("small", SMALL, ACTOR)
        await account(self.store, "shop")
        await self.store.people.add("anna", Role.STAFF, ACTOR)
        for name in ("small", "shop"):
            self.keys[name] = await self.service.issue(name, label=f"till of {name}")
            await contact(self.store, name)
        await contact(self.store, "anna", subject="person")
        await self.record_facts()
        await self.post.after()
        assert self.mail.taken() == []

    async def record_facts(self) -> None:
        """What a background process finds in counters, keys and days: as often as it looks."""
        for _ in range(2):
            await FactRecorder(self.store.facts, self.clock, REMOVAL_AT_MS).record_counted()
            await self.store.facts.record_timed(REMOVAL_AT_MS)

    async def go_to(self, at_ms: int) -> None:
        self.clock.ms = at_ms
        await self.record_facts()
        await self.post.after()


def kind_of(message: EmailMessage) -> str:
    return str(message["List-Unsubscribe"]).partition("?off=")[2].removesuffix(">")


@pytest.fixture
async def world(store: Store, mail: MailServer, clock: ManualClock) -> World:
    made = World(store, mail, clock)
    await made.begin()
    return made


async def expires(world: World) -> None:
    """14 and 3 days before its end."""
    end_ms = world.clock.ms + 30 * DAY_MS
    await world.service.issue("shop", label="old", expires_at_ms=end_ms)
    for days in (20, 14, 10, 3, 1):
        await world.go_to(end_ms - days * DAY_MS)


async def bans(world: World) -> None:
    await world.service.earn_a_ban(world.keys["shop"])
    await world.record_facts()


async def uses(world: World, requests: int) -> None:
    await world.service.ask(world.keys["small"], requests)
    await world.record_facts()


async def disables(world: World) -> None:
    hook = await webhook(world.store, 2, "https://hooks.shop.example:8443/secret?token=1")
    await world.post.after()
    await world.store.webhooks.change(hook, WebhookChange(enabled=False), "key:2")


async def adds_and_removes(world: World, *, is_emptied: bool) -> None:
    """What a stolen key may do in a moment. `is_emptied`: the webhook's row, before the mail is made."""
    await world.store.webhooks.remove(await webhook(world.store, 2, "https://shop.example/secret"), "key:2")
    if is_emptied:
        await remove_old(world.store.retention, world.clock, None)


async def orders(world: World, number: int = 1) -> None:
    await world.store.pets.add(NewPet("Rex", 1), ACTOR)
    await world.store.orders.place(2, NewOrder(number), ACTOR)


async def sends_lists(world: World) -> None:
    """One that is checked, then stored, and one that is refused."""
    store = world.store
    upload_id = await keep_list(store, LIST, "console:anna", key_name="sku", file="new.csv")
    await carry_out(store)
    await work(store, upload_id, UploadState.STORING, "console:anna")
    await keep_list(store, b"%PDF-1.7", "console:anna", file="odd.csv")
    await carry_out(store)


async def calls_deprecated(world: World) -> None:
    """Each month of the last year, each week of the last month: one mail, however often it is called."""
    for day in ("2027-03-01", "2027-03-30", "2027-04-02", "2027-12-07", "2027-12-10", "2027-12-14"):
        world.clock.ms = int(datetime.fromisoformat(f"{day}T12:00:00+00:00").timestamp()) * SECOND_MS
        meter = UsageMeter()
        for _ in range(3):
            meter.count(2, 2, world.clock.ms, allowed=True, deprecated=True)
        await world.store.counters.save(LimiterState(), meter.drain())
        await world.go_to(world.clock.ms)


ENDS = "It will be removed on 2027-12-31."
# What makes it, who gets mail, and of each mail its kind and what it says among other things.
TABLE: list[tuple[Callable[[World], Awaitable[object]], str, list[tuple[str, list[str]]]]] = [
    (expires, "shop", [("key.expiring", ["(old) expires on 2027-02-14 08:01 UTC"])] * 2),
    (
        lambda w: uses(w, 8),
        "small",
        [("limit.approaching", ["8 of its 10 requests", "2027-01-16 00:00 UTC"])],
    ),
    (
        lambda w: uses(w, PER_DAY + 1),
        "small",
        [
            ("limit.approaching", ["10 of its 10 requests"]),
            ("limit.reached", ["all its 10 requests", "429 until 2027-01-16"]),
        ],
    ),
    (bans, "shop", [("key.banned", ["(till of shop) is banned until 2027-01-15 08:"])]),
    (
        disables,
        "shop",
        [
            (
                "webhook.created",
                ["https://hooks.shop.example:8443 was added with the key", "small) on 2027-01-15 08:01 UTC."],
            ),
            (
                "webhook.disabled",
                [
                    "https://hooks.shop.example:8443 was disabled on 2027-01-15 08:0",
                    "with a key of the account",
                ],
            ),
        ],
    ),
    (
        lambda w: adds_and_removes(w, is_emptied=False),
        "shop",
        [("webhook.created", ["https://shop.example was added"])],
    ),
    (
        lambda w: adds_and_removes(w, is_emptied=True),
        "shop",
        [("webhook.created", ["A webhook to an address that was removed was added"])],
    ),
    (lambda w: w.store.accounts.suspend("shop", ACTOR), "shop", [("account.suspended", ["with 403"])]),
    (
        lambda w: w.store.accounts.set_plan("shop", PRO, ACTOR),
        "shop",
        [("plan.changed", ["it is now pro, 300 requests a minute and 10,000 a day."])],
    ),
    (
        calls_deprecated,
        "shop",
        [
            ("operation.deprecated", [f"has called GET /pets/{{petId}} {calls} times since {since}. {ENDS}"])
            for calls, since in (
                (3, "2027-03-01"),
                (3, "2027-04-01"),
                (3, "2027-12-06"),
                (3, "2027-12-13"),
            )
        ],
    ),
    (
        orders,
        "anna",
        [("order.created", ["Order 1 for animal 1 was placed by shop on 2027-01-15 08:01 UTC."])],
    ),
    (
        sends_lists,
        "anna",
        [
            (
                "list.finished",
                [
                    "new.csv was checked on 2027-01-15 08:01 UTC: 2 added, 0 changed and 0 rejected. ",
                    "new.csv was stored on 2027-01-15 08:01 UTC: 2 added",
                    "odd.csv was refused on 2027-01-15 08:01 UTC: ",
                ],
            )
        ],
    ),
]


@pytest.mark.parametrize(("happens", "whose", "expected"), TABLE)
async def test_each_kind_is_one_mail_to_those_it_is_for_alone(
    world: World,
    happens: Callable[[World], Awaitable[object]],
    whose: str,
    expected: list[tuple[str, list[str]]],
) -> None:
    """Each says what happened, why it came, and how to end it."""
    await happens(world)
    await world.post.after()
    owner = ("person", 1) if whose == "anna" else ("account", 1 + (whose == "shop"))
    (its,) = await world.store.contacts.of(*owner)  # type: ignore[arg-type]
    switches = f"https://shop.example/notifications/{its.token}"
    assert recipients(world.mail) == [f"{whose}@example.com"] * len(expected)
    came = world.mail.taken()
    assert len({message["Message-ID"] for message in came}) == len(came)
    for message, (name, phrases) in zip(sorted(came, key=kind_of), expected, strict=True):
        text = words(message)
        assert [phrase for phrase in phrases if phrase not in text] == [], text
        assert (kind_of(message), message["Subject"]) == (
            name,
            BY_NAME[name].heading(whose, 3 if name == "list.finished" else 1),
        )
        assert BY_NAME[name].advice in text
        assert f"because {whose}@example.com is a contact of" in text
        assert text.endswith(f"Unsubscribe, or choose which mail you get: {switches}")
        assert message["List-Unsubscribe"] == f"<{switches}?off={name}>"
        assert "secret" not in message.as_string()


def test_the_table_knows_every_kind() -> None:
    """A new kind is put into the table, and a new reason into the words of webhooks."""
    assert {name for _, _, mails in TABLE for name, _ in mails} == {kind.name for kind in KINDS}
    assert notifications._DISABLED.keys() == {reason.value for reason in DisabledReason}


async def changes_plan(world: World) -> None:
    for plan in (PRO, FREE):
        await world.store.accounts.set_plan("shop", plan, ACTOR)


class TestNobodyElse:
    """Others learn nothing of a change of the plan, or of an order."""

    async def test_who_comes_later_gets_later_ones(self, world: World) -> None:
        """It holds while the mail of the first ones waits."""
        await changes_plan(world)
        world.clock.advance(0.001)
        await contact(world.store, "shop", "late@example.com")
        await world.post.work()
        world.clock.advance(1)
        await changes_plan(world)
        await world.post.after()
        found = dict(zip([of for (of,) in world.mail.envelopes], map(words, world.mail.taken()), strict=True))
        assert {of: text.count("The plan was") for of, text in found.items()} == {
            "shop@example.com": 4,
            "late@example.com": 2,
        }

    async def test_who_was_added_while_the_clock_was_ahead_gets_what_comes(self, world: World) -> None:
        """A contact added while the clock was ahead gets new mail at once, not only when that time comes."""
        world.clock.set_by(365 * 86_400)
        await contact(world.store, "shop", "ahead@example.com")
        world.clock.set_by(-365 * 86_400)
        await changes_plan(world)
        await world.post.after()
        assert "ahead@example.com" in recipients(world.mail)

    async def test_a_kind_that_is_off(self, world: World) -> None:
        """A kind that is on again gets what happens from then on."""
        for off, on in (("plan.changed", ""), ("", "plan.changed")):
            await world.store.contacts.switch(
                "account", "shop", "shop@example.com", ACTOR, off=[off] if off else [], on=[on] if on else []
            )
            await changes_plan(world)
            await world.post.after()
            assert recipients(world.mail) == (["shop@example.com"] if on else [])

    @pytest.mark.parametrize("end", ["switched off", "removed", "disabled"])
    async def test_mail_that_waits_is_not_sent_to_who_takes_it_no_more(self, world: World, end: str) -> None:
        """Others get it; what is of another kind comes."""
        store = world.store
        await store.people.add("otto", Role.OPERATOR, ACTOR)
        await contact(store, "otto", subject="person")
        await orders(world)
        await sends_lists(world)
        await world.post.work()
        (anna,) = await store.contacts.of("person", 1)
        if end == "switched off":
            await store.contacts.switch_by_token(anna.token, "order.created", is_on=False)
        elif end == "removed":
            await store.contacts.remove("person", "anna", "anna@example.com", ACTOR)
        else:
            await store.people.disable("anna", ACTOR)
        await world.post.after()
        for_anna = ["anna@example.com"] if end == "switched off" else []
        assert recipients(world.mail) == [*for_anna, "otto@example.com", "otto@example.com"]
        for_otto = ["order.created", "list.finished"]
        assert sorted(map(kind_of, world.mail.taken())) == sorted(for_otto + for_otto[1:] * bool(for_anna))
        await orders(world, 2)
        await world.post.after()
        assert recipients(world.mail) == ["otto@example.com"]


class TestOtherReleases:
    """Entries that a program of another release wrote."""

    @of_each_store
    @pytest.mark.parametrize("members", [{}, {"list": None, "state": 7}, {"petId": None}, None])
    async def test_what_it_does_not_know_stops_no_mail(
        self, world: World, backend: SharedData, members: dict[str, object] | None
    ) -> None:
        """An unknown part stops no kind of mail: it says what the kind is, and all others come."""
        for kind in KINDS:
            subject, action = kind.entry.split(".")
            number = 99 if subject == "key" else 2
            columns = "at_ms, actor, subject, subject_id, action, after"
            after = "null" if members is None else json.dumps(members)
            backend.execute(
                f"INSERT INTO journal ({columns}) VALUES"
                f" ({world.clock.ms}, 'service', '{subject}', {number}, '{action}', '{after}')"
            )
        await changes_plan(world)
        await orders(world)
        await world.post.after()
        texts = {kind_of(message): words(message) for message in world.mail.taken()}
        assert texts["plan.changed"].count("it is now free") == 3
        assert "An order was placed. Order 1 for animal 1 was placed by shop" in texts["order.created"]
        assert texts["list.finished"].startswith(BY_NAME["list.finished"].what)
        assert texts["limit.reached"].startswith(BY_NAME["limit.reached"].what)


class TestGathering:
    """What is in one mail."""

    async def test_what_comes_within_a_minute_and_nothing_twice(self, world: World) -> None:
        """The minute begins with the first one; the next one is in the next mail."""
        began_ms, numbers = world.clock.ms, range(1, 7)
        for number, seconds in zip(numbers, (0, 30, 59.999, 60, 119.999, 120), strict=True):
            world.clock.ms = began_ms + round(seconds * SECOND_MS)
            await orders(world, number)
            await world.post.work()
        await world.post.after()
        texts = list(map(words, world.mail.taken()))
        assert [[n for n in numbers if f"Order {n} " in text] for text in texts] == [[1, 2, 3], [4, 5], [6]]

    async def test_more_than_it_says_are_counted(self, world: World) -> None:
        """Whether they came in one round or in several."""
        for number in range(1, 2 * SAID_MAX + 6):
            await orders(world, number)
            if number % 7 == 0:
                await world.post.work()
        await world.post.after()
        (text,) = map(words, world.mail.taken())
        assert text.count("animal") == SAID_MAX
        assert f"Order {SAID_MAX} for animal {SAID_MAX} was placed by shop on" in text
        assert "UTC. And 25 more. Read more: " in text
