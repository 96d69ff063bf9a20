"""Webhooks in both stores: how many, what changes of them, what the journal says, tests and tries."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from petstore.core.durations import DAY_MS, HOUR_MS
from petstore.core.errors import (
    Conflict,
    EventNotFound,
    EventsGone,
    RateLimited,
    Unauthorized,
    WebhookNotFound,
)
from petstore.core.events import event_id_of
from petstore.core.limits.plans import PRO
from petstore.core.secrets_cipher import SecretsCipher
from petstore.core.webhooks import (
    DisabledReason,
    NewWebhook,
    Webhook,
    WebhookChange,
    mint,
    renewed,
)
from petstore.storage.store import Store
from petstore.transactions.events import OWNER
from petstore.transactions.rows import TABLES
from tests.storage.contract.test_events import settled
from tests.support.backends import SharedData, through_pgbouncer_too
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR, entries
from tests.support.webhooks import account, add, feed, webhook

URL = "https://shop.example/hook"
NEW = NewWebhook(URL, ("pet.*", "order.created", "pet.*"), "mirror")


@pytest.fixture(autouse=True)
async def _accounts(store: Store) -> None:
    for name in ("shop", "other"):
        await account(store, name)


async def create(store: Store) -> tuple[Webhook, str, bool]:
    return await store.webhooks.create(1, 1, NEW, SecretsCipher().encrypt([mint()]), ACTOR)


async def change(store: Store, **members: Any) -> Webhook:
    return await store.webhooks.change(1, WebhookChange(**members), ACTOR, account_id=1)


class TestCreation:
    async def test_a_key_that_is_revoked_meanwhile_leaves_none_behind(self, store: Store) -> None:
        """The gate lets a request in before its body arrives: neither a new one nor one that is enabled."""
        await create(store)
        await store.keys.revoke(1, ACTOR, with_webhooks=True)
        with pytest.raises(Unauthorized):
            await create(store)
        with pytest.raises(Unauthorized):
            await store.webhooks.change(1, WebhookChange(enabled=True), ACTOR, account_id=1, key_id=1)
        (left,) = await store.webhooks.of_account(1)
        assert left.disabled is DisabledReason.OPERATOR

    async def test_it_is_there_and_others_do_not_find_it(self, store: Store, clock: ManualClock) -> None:
        """It has each type once; its account has it, by the key that made it, and nobody else."""
        made, secrets, is_replay = await create(store)
        expected = Webhook(1, 1, 1, URL, ("pet.*", "order.created"), "mirror", clock.ms)
        assert (made, is_replay) == (expected, False)
        assert SecretsCipher().decrypt(secrets)[0].text.startswith("whsec_")
        for found in (store.webhooks.of_account(1), store.webhooks.of_key(1)):
            assert await found == [expected]
        assert await store.webhooks.get(1, 1) == expected
        assert await store.webhooks.of_account(2) == await store.webhooks.of_key(2) == []
        works: list[Any] = [
            store.webhooks.get(1, 2),
            store.webhooks.change(1, WebhookChange(enabled=False), ACTOR, account_id=2),
            store.webhooks.remove(1, ACTOR, 2),
            store.webhooks.rotate(1, ACTOR, lambda secrets, _: secrets, 2),
            store.deliveries.test(1, ACTOR, 2),
            store.deliveries.attempts(1, 10, 1, 2),
            store.deliveries.redeliver(1, "evt_000000000000_1", ACTOR, 2),
            store.webhooks.get(2),
        ]
        for work in works:
            with pytest.raises(WebhookNotFound):
                await work

    async def test_the_plan_bounds_their_number_whoever_comes_at_once(self, backend: SharedData) -> None:
        """Any number of processes may come; a larger plan has more, and a removal makes room."""
        stores = backend.open(), backend.open()

        async def many(count: int) -> int:
            made = await asyncio.gather(
                *(create(stores[at % 2]) for at in range(count)), return_exceptions=True
            )
            assert {type(each) for each in made} <= {tuple, Conflict}
            return sum(isinstance(each, tuple) for each in made)

        assert await many(8) == 3
        await stores[0].accounts.set_plan("shop", PRO, ACTOR)
        assert await many(12) == 7
        await stores[0].webhooks.remove(4, ACTOR)
        assert await many(2) == 1
        with pytest.raises(Conflict, match="10 webhooks, which is all that the plan pro has"):
            await create(stores[0])


class TestChange:
    async def test_each_has_its_entry_and_none_a_secret(self, store: Store, backend: SharedData) -> None:
        """Members before and after; a change of nothing writes none. After the removal no table has any."""
        _, secrets, _ = await create(store)
        start = await settled(store)
        await change(store, url="https://shop.example/new", types=("*",), description="")
        await change(store, url="https://shop.example/new")
        await change(store, after=str(start))
        await change(store, enabled=False)
        await store.webhooks.change(1, WebhookChange(enabled=True), "cli:anna")
        _, rotated = await store.webhooks.rotate(
            1,
            ACTOR,
            lambda text, now_ms: SecretsCipher().encrypt(renewed(SecretsCipher().decrypt(text), now_ms)),
        )
        event_id = await store.deliveries.test(1, ACTOR, 1)
        await store.deliveries.redeliver(1, event_id, ACTOR)
        await store.webhooks.remove(1, ACTOR)
        found = await entries(store, "webhook:1")
        assert [(entry.type.removeprefix("webhook."), entry.before, entry.after) for entry in found] == [
            (
                "added",
                None,
                {
                    "accountId": 1,
                    "keyId": 1,
                    "url": URL,
                    "types": ["pet.*", "order.created"],
                    "description": "mirror",
                },
            ),
            (
                "changed",
                {"url": URL, "types": ["pet.*", "order.created"], "description": "mirror"},
                {"url": "https://shop.example/new", "types": ["*"], "description": ""},
            ),
            ("moved", found[2].before, {"after": str(start)}),
            (
                "disabled",
                {"enabled": True, "disabledReason": None},
                {"enabled": False, "disabledReason": "owner"},
            ),
            (
                "enabled",
                {"enabled": False, "disabledReason": "owner"},
                {"enabled": True, "disabledReason": None},
            ),
            ("rotated", {}, {}),
            ("tested", None, {"accountId": 1, "url": "https://shop.example/new"}),
            ("redelivered", None, {"eventId": event_id}),
            ("removed", {"url": "https://shop.example/new", "types": ["*"], "description": ""}, None),
        ]
        assert found[4].actor == "cli:anna"
        text = str([backend.execute(f"SELECT {', '.join(each.columns)} FROM {each.name}") for each in TABLES])
        for secret in (*SecretsCipher().decrypt(secrets), *SecretsCipher().decrypt(rotated)):
            assert secret.text.removeprefix("whsec_")[:8] not in text

    async def test_a_place_that_can_not_go_on_changes_nothing(self, store: Store) -> None:
        """A bookmark that is not kept, as `after` or on enabling, changes nothing; `now` is taken."""
        await create(store)
        await add(store, 3)
        before = await settled(store)
        await store.events.note_restore(ACTOR)
        with pytest.raises(EventsGone):
            await change(store, url="https://shop.example/new", after=str(before))
        assert (await store.webhooks.get(1)).url == URL
        await change(store, enabled=False)
        with pytest.raises(EventsGone):
            await change(store, enabled=True)
        assert (await store.webhooks.get(1)).disabled is DisabledReason.OWNER
        assert (await change(store, enabled=True, after="now")).disabled is None

    @through_pgbouncer_too
    async def test_a_removal_is_one_short_transaction(self, store: Store, backend: SharedData) -> None:
        """However much it had, which nobody sees any more: that leaves later, in test_retention.py."""
        await create(store)
        await webhook(store, 2, URL)
        for number in (1, 2):
            await store.deliveries.test(number, ACTOR, number)
        note_try = "INSERT INTO webhook_tries (webhook_id, event_id, type, at_ms, duration_ms, answer) VALUES"
        backend.execute(f"{note_try} (1, 'e', 't', 0, 0, ''), (2, 'e', 't', 0, 0, '')")
        commits: list[int] = []
        store.on_commit(lambda: commits.append(1))
        await store.webhooks.remove(1, ACTOR)
        assert len(commits) == 1
        for table in ("webhook_tries", "webhook_repetitions"):
            assert backend.execute(f"SELECT count(*) FROM {table}") == [(2,)]
        with pytest.raises(WebhookNotFound):
            await store.webhooks.remove(1, ACTOR)

    async def test_one_that_was_removed_is_nowhere(self, store: Store, backend: SharedData) -> None:
        """A removed webhook is in no list and no count, and is of no key; no deliverer takes it. Its row, by
        which its entries are the account's, keeps no secrets."""
        await create(store)
        await store.webhooks.remove(1, ACTOR)
        with pytest.raises(WebhookNotFound):
            await store.webhooks.get(1)
        assert await store.webhooks.of_account(1) == await store.webhooks.of_key(1) == []
        assert await store.webhooks.page(10) == await store.webhooks.page(10, 1) == []
        assert (await store.deliverers.states())[0] == {"healthy": 0, "failing": 0, "disabled": 0}
        assert not await store.deliverers.is_needed()
        assert await store.deliveries.receivers(1, "order.placed") == []
        assert [entry.type for entry in await entries(store, "webhook:1")] == [
            "webhook.added",
            "webhook.removed",
        ]
        owners = f"SELECT DISTINCT {OWNER} FROM journal WHERE subject = 'webhook'"
        assert backend.execute(owners) == [(1,)]
        assert backend.execute("SELECT secrets FROM webhooks") == [("[]",)]


def test_five_secrets_sign_at_once_each_for_a_day() -> None:
    """The newest first; one more is refused until the oldest one has ended."""
    kept = [mint()]
    for hours in range(4):
        kept = renewed(kept, hours * HOUR_MS)
    assert [each.ends_ms for each in kept] == [
        None,
        *(DAY_MS + hours * HOUR_MS for hours in (3, 2, 1, 0)),
    ]
    with pytest.raises(Conflict, match="5 secrets that sign"):
        renewed(kept, 4 * HOUR_MS)
    with pytest.raises(Conflict):
        renewed(kept, DAY_MS - 1)
    later = renewed(kept, DAY_MS)
    assert [each.text for each in later[1:]] == [each.text for each in kept[:4]]


class TestOutOfTurn:
    async def test_an_account_tests_ten_times_a_minute(self, backend: SharedData, clock: ManualClock) -> None:
        """All its webhooks count together, one that was removed too, in both processes; another account has
        its own ten."""
        stores = backend.open(), backend.open()
        for owner in (1, 1, 2):
            await webhook(stores[0], owner, URL)
        asked = [stores[at % 2].deliveries.test(at % 2 + 1, ACTOR, 1) for at in range(14)]
        done = await asyncio.gather(*asked, return_exceptions=True)
        assert sorted(type(each).__name__ for each in done) == ["RateLimited"] * 4 + ["str"] * 10
        await stores[0].deliveries.test(3, ACTOR, 2)
        await stores[0].webhooks.remove(2, ACTOR)
        clock.advance(59)
        with pytest.raises(RateLimited):
            await stores[0].deliveries.test(1, ACTOR, 1)
        clock.advance(1)
        await stores[0].deliveries.test(1, ACTOR, 1)

    async def test_what_may_be_sent_again(self, store: Store, backend: SharedData) -> None:
        """What the account sees: its own and what is shared; nothing of others, no other webhook's test,
        nothing of another data set, no entry that is not an event."""
        for owner in (1, 1, 2):
            await webhook(store, owner, URL)
        await add(store)
        own, others = await store.deliveries.test(1, ACTOR, 1), await store.deliveries.test(2, ACTOR, 1)
        identity = (await settled(store)).data_set
        ids = {entry.about + entry.action: event_id_of(identity, entry.id) for entry in await entries(store)}
        before = backend.execute("SELECT count(*) FROM webhook_repetitions")
        for event_id in ("nonsense", others, ids["key:2issued"], ids["account:1added"], ids["webhook:1added"],
                         f"evt_{identity}_999", f"evt_000000000000_{own.rpartition('_')[2]}"):  # fmt: skip
            with pytest.raises(EventNotFound):
                await store.deliveries.redeliver(1, event_id, ACTOR)
        assert backend.execute("SELECT count(*) FROM webhook_repetitions") == before
        for event_id in (own, ids["key:1issued"], *(await feed(store))):
            await store.deliveries.redeliver(1, event_id, ACTOR)
        assert backend.execute("SELECT count(*) FROM webhook_repetitions WHERE webhook_id = 1") == [(3,)]

    async def test_no_more_than_a_bound_wait_to_be_sent_again(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A bounded number of events wait to be sent again, else an account could fill the table."""
        monkeypatch.setattr("petstore.transactions.deliveries.REPETITIONS_MAX", 2)
        await create(store)
        await add(store, 3)
        first, second, third = await feed(store)
        for event_id in (first, second):
            await store.deliveries.redeliver(1, event_id, ACTOR)
        with pytest.raises(Conflict, match="2 events wait to be sent again to webhook 1"):
            await store.deliveries.redeliver(1, third, ACTOR)

    async def test_a_disabled_one_is_sent_no_event_or_test_until_it_is_enabled(self, store: Store) -> None:
        """The receiver was gone, and nobody has said that it is back."""
        await webhook(store, 1, URL)
        await add(store)
        await change(store, enabled=False)
        (event_id,) = await feed(store)
        for work in (store.deliveries.test(1, ACTOR, 1), store.deliveries.redeliver(1, event_id, ACTOR)):
            with pytest.raises(Conflict, match="enable it first"):
                await work
