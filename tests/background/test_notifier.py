"""Mail through refusals, deaths, stops and several processes: none is lost, and each arrives once."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from petstore.background import notifier
from petstore.core.durations import DAY_MS, HOUR_MS, SECOND_MS
from petstore.core.limits.plans import FREE, PRO
from petstore.core.webhooks import REPETITIONS_MS
from petstore.storage.store import Store
from petstore.transactions.notifications import LEASE_MS
from tests.background.post import Post, contact, recipients, words
from tests.background.test_takeovers import Flaky
from tests.storage.contract.test_events import settled
from tests.support.backends import SharedData, of_each_store
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR
from tests.support.mail import CLOSE, CONNECT, RCPT, Answer, Held, MailServer, says, takes
from tests.support.waiting import until, wait_for
from tests.support.webhooks import account

SHOPS = ("anna", "ben", "cleo")
ALL = [f"{name}@example.com" for name in SHOPS]
ROWS = "SELECT due_ms, tries, begun FROM mails ORDER BY id"


@pytest.fixture
def post(store: Store, mail: MailServer, clock: ManualClock) -> Post:
    return Post(store, mail, clock)


@pytest.fixture(autouse=True)
async def shops(store: Store, post: Post) -> None:
    """An account of each name with a contact, at the end of the journal."""
    for name in SHOPS:
        await account(store, name)
        await contact(store, name)
    await post.work()


async def change(store: Store) -> None:
    """A fact for each of them."""
    for name in SHOPS:
        is_free = (await store.accounts.find(name)).plan.name == "free"
        await store.accounts.set_plan(name, PRO if is_free else FREE, ACTOR)


async def faults(store: Store) -> list[str | None]:
    return [(await store.contacts.of("account", number))[0].fault for number in (1, 2, 3)]


class TestServerTrouble:
    """A server that takes no mail at all."""

    async def test_an_hour_of_it_loses_nothing(
        self, store: Store, backend: SharedData, post: Post, mail: MailServer, clock: ManualClock
    ) -> None:
        """An outage loses no mail: one is tried after 5 s, then twice as long, 5 min at most, which counts as
        no try; then all arrive once. The log says once that mail waits, and once that it goes on."""
        refusals: list[Answer] = [
            says(said, at=step)
            for step, said in (
                (CONNECT, CLOSE),
                (CONNECT, "421 4.3.2 Later"),
                (RCPT, "421 4.3.2 Later"),
                (RCPT, CLOSE),
                (CONNECT, "554 5.7.1 No"),
            )
        ]
        began_ms, pauses = clock.ms, [5, 10, 20, 40, 80, 160, *[300] * 12]
        await change(store)
        with capture_logs() as lines:
            mail.answer = refusals[0]
            await post.after()
            for number, seconds in enumerate(pauses, 1):
                mail.answer = refusals[number % len(refusals)]
                assert mail.connections == number
                clock.advance(seconds - 0.001)
                await post.work()
                assert mail.connections == number
                clock.advance(0.001)
                await post.work()
            assert clock.ms - began_ms > HOUR_MS
            assert [row[1:] for row in backend.execute(ROWS)] == [(0, 0)] * 3
            assert (mail.messages, await faults(store)) == ([], [None] * 3)
            mail.answer = takes
            await post.after(300)
        assert recipients(mail) == ALL
        assert [line["event"] for line in lines if line["event"] in ("mail waits", "mail goes on")] == [
            "mail waits",
            "mail goes on",
        ]
        assert Counter(post.came) == {"failed": len(pauses) + 1, "sent": 3}

    async def test_facts_of_an_outage_are_few_mails(self, store: Store, post: Post, mail: MailServer) -> None:
        """A change every five minutes for three hours: a reader gets a mail for about each hour."""
        mail.answer = says(CLOSE, at=CONNECT)
        for _ in range(36):
            await change(store)
            await post.after(300)
        mail.answer = takes
        await post.after(300)
        texts = [words(message) for message in mail.messages if message["To"] == ALL[0]]
        assert sum(text.count("The plan was") for text in texts) == 36
        assert len(texts) <= 6

    async def test_a_clock_that_was_set_back_lengthens_no_pause(
        self, store: Store, post: Post, mail: MailServer, clock: ManualClock
    ) -> None:
        """It ends when so much time has passed."""
        await change(store)
        mail.answer = says(CLOSE, at=CONNECT)
        await post.after()
        post.notifier._clock = SimpleNamespace(now_ms=lambda: clock.ms - DAY_MS, monotonic=clock.monotonic)
        mail.answer = takes
        await post.after(5)
        assert recipients(mail) == ALL

    async def test_trouble_of_the_store_hides_none_of_the_server(
        self, store: Store, post: Post, mail: MailServer
    ) -> None:
        """Each is said once, with the server's address, and that it is over."""
        await change(store)
        flaky: Any = Flaky(store.events)
        flaky.fails_at = 1
        post.notifier._store = SimpleNamespace(  # type: ignore[assignment]
            events=flaky, notifications=store.notifications
        )
        mail.answer = says(CLOSE, at=CONNECT)
        with capture_logs() as lines:
            for _ in range(3):
                await post.notifier._round()
            await settled(store)
            await post.notifier._round()
            post.clock.advance(60)
            await post.notifier._round()
        assert [(line["event"], line.get("reason")) for line in lines][:2] == [
            ("mail waits", "out of order"),
            ("mail goes on", None),
        ]
        assert [line["event"] for line in lines[2:]] == ["mail waits"]
        assert lines[2]["reason"].startswith(f"127.0.0.1:{mail.port}: ")

    async def test_after_four_days_it_is_given_up(
        self, store: Store, backend: SharedData, post: Post, mail: MailServer, clock: ManualClock
    ) -> None:
        """What happened so long ago is not reported either."""
        mail.answer = says(CLOSE, at=CONNECT)
        await change(store)
        began_ms = clock.ms
        await post.after()
        clock.ms = began_ms + 4 * DAY_MS
        await post.work()
        assert len(backend.execute(ROWS)) == 3
        clock.advance(300)
        mail.answer = takes
        await post.work()
        assert (backend.execute(ROWS), post.came.count("given_up"), mail.messages) == ([], 3, [])
        await change(store)
        clock.ms += 4 * DAY_MS
        await post.after()
        assert (mail.messages, backend.execute(ROWS)) == ([], [])


class TestRefused:
    """One recipient."""

    async def test_others_go_on_and_it_comes_by_the_schedule(
        self, store: Store, backend: SharedData, post: Post, mail: MailServer, clock: ManualClock
    ) -> None:
        """A failed mail delays no other, repeats as webhooks do for three days, and its contact says why."""
        mail.answer = says("451 4.2.0 Full", at=RCPT, to=ALL[0])
        await change(store)
        await post.after()
        assert recipients(mail) == ALL[1:]
        for number, pause_ms in enumerate(REPETITIONS_MS, 1):
            ((due_ms, tries, begun),) = backend.execute(ROWS)
            assert isinstance(due_ms, int)
            assert (tries, begun, abs(due_ms - clock.ms - pause_ms) <= pause_ms * 0.2) == (number, 0, True)
            clock.ms = due_ms - 1
            await post.work()
            assert len(post.came) == number + 2
            clock.ms = due_ms
            await post.work()
        assert backend.execute(ROWS) == []
        assert await faults(store) == ["It answered 451 4.2.0 Full", None, None]
        assert Counter(post.came) == {"sent": 2, "failed": len(REPETITIONS_MS), "given_up": 1}

    @of_each_store
    async def test_by_bytes_that_are_no_text(self, store: Store, post: Post, mail: MailServer) -> None:
        """The mail of others goes on, in each database."""
        mail.answer = says("550 5.1.1 No\x00such user", at=RCPT, to=ALL[0])
        await change(store)
        await post.after()
        assert recipients(mail) == ALL[1:]
        assert await faults(store) == [r"It answered 550 5.1.1 No\x00such user", None, None]

    @pytest.mark.parametrize(
        ("said", "is_final"), [("550 5.1.1 No such user", True), ("550 5.7.1 Relaying denied", False)]
    )
    async def test_for_good_or_by_a_policy(
        self, store: Store, post: Post, mail: MailServer, said: str, is_final: bool
    ) -> None:
        """What nobody takes is given up at once, what a setting refuses is not. A mail that arrives ends the
        fault."""
        mail.answer = says(said, at=RCPT, to=ALL[0])
        await change(store)
        await post.after()
        assert await faults(store) == [f"It answered {said}", None, None]
        mail.answer = takes
        await post.after(6)
        assert recipients(mail) == ALL[is_final:]
        assert (await faults(store))[0] == (f"It answered {said}" if is_final else None)
        await change(store)
        await post.after()
        assert (len(mail.messages), await faults(store)) == (6 - is_final, [None] * 3)


class TestDeaths:
    """A process that sends dies."""

    @pytest.mark.e2e
    @pytest.mark.slow
    async def test_killed_before_it_has_noted(
        self, store: Store, backend: SharedData, post: Post, mail: MailServer, clock: ManualClock
    ) -> None:
        """SIGKILL while the server has the mail and does not answer: it comes again ten minutes later, and no
        third time, however often that happens. All others come once."""
        await change(store)
        await post.work()
        clock.advance(60)
        for taken in (1, 4):
            held = mail.answer = Held()
            await killed_while(lambda: len(held.all) == 1, backend.url, mail.url, clock.ms)  # noqa: B023
            await until(lambda: len(mail.messages) == taken)  # noqa: B023  once it has heard of the end
            mail.answer = takes
            await post.work()
            clock.ms += LEASE_MS - 1
            await post.work()
            clock.ms += 1
        await post.work()
        clock.ms += LEASE_MS
        await post.work()
        assert sorted(Counter(recipients(mail)).values()) == [1, 1, 2]
        assert backend.execute(ROWS) == []
        assert Counter(post.came) == {"sent": 2, "given_up": 1}

    async def test_a_note_that_fails_sends_nothing_again(
        self, store: Store, backend: SharedData, post: Post, mail: MailServer, clock: ManualClock
    ) -> None:
        """Whichever call to the store fails, before its work or after it: all arrive, and each once."""
        for is_late in (False, True):
            for call in range(1, 6):
                await change(store)
                await settled(store)
                await post.after()
                part = Flaky(store.notifications)
                part.is_late, part.fails_at = is_late, call
                flaky: Any = SimpleNamespace(events=store.events, notifications=part)
                await change(store)
                await settled(store)
                post.notifier._store = flaky
                for seconds in (60, 0, 0, LEASE_MS / SECOND_MS, 0):
                    await post.notifier._round()
                    clock.advance(seconds)
                assert part.calls > call
                assert (recipients(mail), backend.execute(ROWS)) == (sorted(ALL * 2), []), (is_late, call)
                mail.taken()
                post.notifier._store = store


async def killed_while(is_so: Callable[[], bool], *arguments: object) -> None:
    """A process that sends, until then."""
    command = [sys.executable, "-m", "tests.background.post", *map(str, arguments)]
    process = await asyncio.to_thread(subprocess.Popen, command)
    try:
        await asyncio.to_thread(wait_for, is_so, "its first mail")
    finally:
        process.kill()
        await asyncio.to_thread(process.wait)


class TestStops:
    """The loop stops."""

    @pytest.fixture
    async def held(self, store: Store, post: Post, mail: MailServer, clock: ManualClock) -> Held:
        """Three mails are due, and a server that does not answer."""
        await change(store)
        await post.work()
        clock.advance(60)
        mail.answer = held = Held()
        return held

    async def test_a_try_has_some_seconds_to_end(
        self, backend: SharedData, post: Post, mail: MailServer, held: Held, clock: ManualClock
    ) -> None:
        """It is noted, and no other one begins."""
        running = asyncio.create_task(post.notifier.run())
        await until(lambda: len(held.all) == 1)
        running.cancel()
        await asyncio.sleep(0)
        held.open()
        await asyncio.wait([running])
        assert [row[1:] for row in backend.execute(ROWS)] == [(0, 0)] * 2
        mail.answer = takes
        clock.ms += LEASE_MS
        await Post(post._store, mail, clock).work()
        assert recipients(mail) == ALL

    async def test_a_try_that_does_not_end_may_have_arrived(
        self, post: Post, mail: MailServer, held: Held, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It comes once more, after its lease; the stop leaves no task behind."""
        monkeypatch.setattr(notifier, "_STOP_SECONDS", 0.0)
        before = asyncio.all_tasks()
        running = asyncio.create_task(post.notifier.run())
        await until(lambda: len(held.all) == 1)
        running.cancel()
        await asyncio.wait([running])
        assert asyncio.all_tasks() == before
        mail.answer = takes
        other = Post(post._store, mail, clock)
        await other.work()
        clock.ms += LEASE_MS
        await other.work()
        assert sorted(Counter(recipients(mail)).values()) == [1, 1, 2]

    async def test_a_mail_that_is_being_taken_is_given_back(
        self,
        store: Store,
        backend: SharedData,
        post: Post,
        mail: MailServer,
        held: Held,
        clock: ManualClock,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """It is sent by who comes next, at once."""
        take, is_taken, may_go_on = store.notifications.next, asyncio.Event(), asyncio.Event()

        async def slow(ended: Any) -> Any:
            found = await take(ended)
            is_taken.set()
            await may_go_on.wait()
            return found

        monkeypatch.setattr(store.notifications, "next", slow)
        running = asyncio.create_task(post.notifier.run())
        await is_taken.wait()
        running.cancel()
        await until(lambda: post.notifier._is_stopping)
        may_go_on.set()
        await asyncio.wait([running])
        monkeypatch.undo()
        assert (held.all, [row[1:] for row in backend.execute(ROWS)]) == ([], [(0, 0)] * 3)
        mail.answer = takes
        await Post(store, mail, clock).work()
        assert recipients(mail) == ALL
