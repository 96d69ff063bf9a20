"""One limiter for a key: threads, tasks and clients together, on the real service's limits."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import httpx2
import pytest
from petstore_client import AsyncPetstore, KeyBanned, Petstore, PetstoreError, RateLimited
from petstore_client.ban_guard import BanGuard

from tests.client.kit import ADDRESS, KEY, Pace, Script, Scripted, Served, answer, failure, scripted
from tests.support.clock import ManualClock


def in_threads(service: Served, work: Callable[[], Any], count: int) -> None:
    """Call `work` in `count` threads that begin at once."""
    barrier = threading.Barrier(count)
    service.pace.callers = count

    def begin() -> None:
        barrier.wait()
        work()
        service.pace.left()

    with ThreadPoolExecutor(count) as pool:
        for each in [pool.submit(begin) for _ in range(count)]:
            each.result()
    service.pace.callers = 1


async def in_tasks(service: Served, work: Callable[[], Awaitable[Any]], count: int) -> None:
    """Call `work` in `count` tasks."""

    async def begin() -> None:
        await work()
        await asyncio.sleep(0)  # the one that it woke is awake before the clock may move
        service.pace.left()

    service.pace.callers = count
    await asyncio.gather(*[begin() for _ in range(count)])
    service.pace.callers = 1


def test_a_hundred_threads_on_the_free_plan_are_never_refused(service: Served, free_key: str) -> None:
    """60 calls in the first minute, the others after its reset; no 429."""
    service.seen.clear()
    began = service.clock.monotonic()
    petstore = service.client("sync", free_key, seconds=10_000)
    in_threads(service, petstore.usage, 100)
    assert service.statuses() == [200] * 100
    assert 60 <= service.clock.monotonic() - began <= 61
    assert petstore.limits.minute.remaining == 20


def test_a_hundred_tasks_on_the_free_plan_are_never_refused(
    service: Served, free_key: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Tasks and a client of threads share the limiter: none is refused, forty wait, and one line says so."""
    caplog.set_level("INFO", logger="petstore_client")
    service.seen.clear()
    began = service.clock.monotonic()
    service.client("sync", free_key).usage()
    transport = httpx2.MockTransport(service.answer)

    async def calls() -> None:
        petstore = AsyncPetstore(
            ADDRESS, free_key, seconds=10_000, transport=transport, runtime=service.runtime
        )
        await in_tasks(service, petstore.usage, 99)

    service.run(calls())
    assert service.statuses() == [200] * 100
    assert 60 <= service.clock.monotonic() - began <= 61
    (message,) = caplog.messages
    assert re.fullmatch(r"getUsage waited 6[01]\.\d s: the limit", message)


def test_the_log_has_no_line_for_a_turn_of_milliseconds(caplog: pytest.LogCaptureFixture) -> None:
    """Eight calls of nine wait for the answer of the first, for less than a second."""
    caplog.set_level("INFO", logger="petstore_client")
    pace = Pace(ManualClock())
    pace.callers = 10  # so that the clock stands

    async def handle(_: httpx2.Request) -> httpx2.Response:
        await asyncio.sleep(0)
        return answer(200, [])

    async def calls() -> None:
        transport = httpx2.MockTransport(handle)
        petstore = AsyncPetstore(ADDRESS, KEY, transport=transport, runtime=pace.runtime())
        await asyncio.gather(*[petstore.categories.list() for _ in range(9)])

    asyncio.run(calls())
    assert caplog.messages == []


def test_calls_go_on_within_a_second_of_the_reset(service: Served, kind: str, free_key: str) -> None:
    """The service tells whole seconds. The window began 0.9 s into one, so 60 s later is 0.9 s early."""
    service.clock.set_seconds(service.clock.ms // 1_000 + 120)
    opened = service.clock.monotonic()
    service.clock.advance(0.9)
    petstore = service.client(kind, free_key)
    for _ in range(61):
        petstore.usage()
    assert 0 <= service.clock.monotonic() - (opened + 60) <= 1


def test_the_day_is_waited_for_only_within_the_callers_seconds(service: Served, kind: str) -> None:
    """A call waits until the UTC midnight only within its seconds; else RateLimited says when calls go on."""
    key = service.open_account(f"day-{kind}", "enterprise", per_minute=10, per_day=12)
    service.clock.set_seconds((service.clock.ms // 86_400_000 + 1) * 86_400 + 3_600)
    petstore = service.client(kind, key)
    service.seen.clear()
    for _ in range(12):
        petstore.usage()
    before = service.clock.monotonic()
    with pytest.raises(RateLimited) as caught:
        petstore.usage()
    assert service.clock.monotonic() == before
    assert caught.value.retry_after_seconds == pytest.approx(82_740, abs=1)
    petstore.with_options(seconds=86_400).usage()
    assert service.clock.ms % 86_400_000 < 1_000
    assert service.statuses() == [200] * 13


def test_a_ban_is_silence(scripted: Scripted) -> None:
    """Nothing is sent until its end. A call that may not wait so long raises KeyBanned at once."""
    banned = failure(429, "key_banned", retry_after="61")
    petstore, script = scripted(banned, answer(200, []))
    impatient = petstore.with_options(seconds=60)
    for _ in range(3):
        with pytest.raises(KeyBanned) as caught:
            impatient.pets.get_many([1])
        assert caught.value.retry_after_seconds == 61
    assert len(script.requests) == 1
    petstore.pets.get_many([1])
    assert script.waits == [61]


def test_a_ban_outlives_its_client() -> None:
    """The limiter belongs to the process: another client of the key knows of the ban."""
    script = Script(failure(429, "key_banned", retry_after="61"))
    transport = httpx2.MockTransport(script.handle)
    for _ in range(2):
        petstore = Petstore(ADDRESS, KEY, transport=transport, runtime=script.runtime, seconds=9)
        with petstore, pytest.raises(KeyBanned):
            petstore.usage()
    assert len(script.requests) == 1


def test_keys_and_addresses_have_limiters_of_their_own() -> None:
    """Only the same key at the same service is the same account."""
    script = Script(answer(200, []))
    transport = httpx2.MockTransport(script.handle)
    first, again, other_key, other_address = (
        Petstore(address, key, transport=transport, runtime=script.runtime)
        for address, key in [
            (ADDRESS, KEY),
            (f"{ADDRESS}/v1/", KEY),
            (ADDRESS, KEY[:-1] + "x"),
            ("http://127.0.0.1", KEY),
        ]
    )
    first.categories.list()
    assert again.limits is first.limits
    assert first.limits is not None
    assert other_key.limits is None
    assert other_address.limits is None


def test_a_refusal_stops_all_until_its_end(scripted: Scripted) -> None:
    """A refusal stops all calls until its end, not only the call that was refused."""
    script_answers = answer(200, []), failure(429, "rate_limited", retry_after="20"), answer(200, [])
    petstore, script = scripted(*script_answers)
    petstore.pets.get_many([1])
    with pytest.raises(RateLimited):
        petstore.with_options(seconds=5).pets.get_many([1])
    with pytest.raises(RateLimited):
        petstore.with_options(seconds=5).pets.get_many([1])
    petstore.pets.get_many([1])
    assert script.waits == [0, 20]


def test_refusals_one_after_another_are_few(scripted: Scripted) -> None:
    """Refusals are three in five minutes at most, whatever the service says: 20 processes aren't banned."""
    refusal = failure(429, "rate_limited", retry_after="1")
    petstore, script = scripted(refusal, seconds=3_000)
    with pytest.raises(RateLimited):
        petstore.usage()
    times = script.times
    assert len(times) > 20
    assert all(later - earlier >= 300 for earlier, later in zip(times, times[3:], strict=False))


@pytest.mark.parametrize("lost", [0, 1])
def test_any_number_of_calls_may_be_refused_at_once(lost: int) -> None:
    """More than sixty that were under way together: silence for five minutes."""
    guard = BanGuard()
    for _ in range(lost):
        guard.unanswered(9.0)
    for _ in range(70):
        guard.refused(10.0)
    assert guard.resumes_at(10.0) == 310
    assert guard.resumes_at(310.0) <= 310


def test_answers_that_get_lost_are_few(scripted: Scripted) -> None:
    """Each may have been a refusal: not more than sixty in any five minutes."""
    petstore, script = scripted(httpx2.ReadError("ended"), tries=1)
    for _ in range(200):
        with pytest.raises(PetstoreError):
            petstore.usage()
    times = script.times
    assert all(later - earlier >= 300 for earlier, later in zip(times, times[60:], strict=False))


def test_a_pause_for_caution_says_so(scripted: Scripted) -> None:
    """Calls are left, so that the limit is used up would mislead."""
    answers: list[httpx2.Response | Exception] = [answer(200, []), httpx2.ReadError("ended")] * 60
    petstore, script = scripted(*answers, tries=1, seconds=9)
    for each in answers:
        with pytest.raises(PetstoreError) if isinstance(each, Exception) else nullcontext():
            petstore.categories.list()
    with pytest.raises(RateLimited, match="got no answer"):
        petstore.categories.list()
    assert len(script.requests) == 120


@pytest.mark.parametrize("lost", [httpx2.ConnectError("nobody listens"), httpx2.ReadError("ended")])
def test_an_outage_of_days_ends_no_program(lost: Exception) -> None:
    """Pauses stop doubling before their numbers grow too large."""
    patient = scripted("sync", lost, tries=1_100, seconds=10**6)
    with patient as (petstore, script), pytest.raises(PetstoreError):
        petstore.usage()
    assert len(script.requests) == 1_100


def test_the_windows_of_an_address_are_forgotten(scripted: Scripted) -> None:
    """A 401 tells the limit of the address. Once the key is good again, calls go on side by side."""
    address = {"RateLimit-Policy": '"address";q=600;w=60', "RateLimit": '"address";r=599;t=60'}
    unauthorized = answer(401, {"code": "unauthorized", "message": "No.", "status": 401}, address)
    petstore, script = scripted(answer(200, []), unauthorized, answer(200, []))
    petstore.categories.list()
    with pytest.raises(PetstoreError):
        petstore.categories.list()
    petstore.categories.list()
    script.clock.advance(61)
    petstore.categories.list()
    limiter = script.runtime.limiter(f"{ADDRESS}/v1", KEY)
    assert limiter._windows.keys() == {"minute"}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"RateLimit": "nonsense", "RateLimit-Policy": '"minute"'},
        {"RateLimit": '"minute";r=1', "RateLimit-Policy": '"minute";q=60'},
        {"RateLimit": '"minute";r=-1;t=99999999999999999999', "RateLimit-Policy": '"minute";q=60;w=60'},
        {"X-RateLimit-Limit": "60", "X-RateLimit-Remaining": "", "X-RateLimit-Reset": "soon"},
    ],
)
def test_without_limits_calls_go_one_by_one(scripted: Scripted, headers: dict[str, str]) -> None:
    """Nothing is known, so nothing is used up, and no call waits."""
    told = httpx2.Response(200, headers=headers, content=b"[]")
    petstore, script = scripted(told)
    for _ in range(100):
        petstore.categories.list()
    assert petstore.limits is None
    assert set(script.waits) == {0}


def test_the_older_headers_are_understood(scripted: Scripted) -> None:
    """`X-RateLimit-*` alone: one window, by the machine's clock."""
    headers = {"X-RateLimit-Limit": "60", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1800000040"}
    petstore, script = scripted(httpx2.Response(200, headers=headers, content=b"[]"))
    petstore.categories.list()
    (window,) = petstore.limits.windows
    assert (window.limit, window.remaining, window.reset_after_seconds) == (60, 0, 10)
    petstore.categories.list()
    assert script.waits == [10]


def test_limits_tell_each_window(service: Served, kind: str, free_key: str) -> None:
    """What is left and when it ends, by the service's clock; None before the first answer."""
    petstore = service.client(kind, free_key)
    before = petstore.limits
    petstore.usage()
    minute, day = petstore.limits.minute, petstore.limits.day
    assert before is None
    assert (minute.limit, minute.remaining, day.limit, day.remaining) == (60, 59, 1_000, 999)
    assert minute.reset_at.timestamp() == service.clock.ms // 1_000 + 60
    assert day.reset_at.hour == day.reset_at.minute == 0


def test_cancelled_calls_give_their_places_back() -> None:
    """The only probe is cancelled while it waits for its answer, five times: the next call does not wait."""
    script = Script(answer(200, []))
    begun = asyncio.Event()
    slow = True

    async def handle(request: httpx2.Request) -> httpx2.Response:
        told = script.handle(request)
        if slow:
            begun.set()
            await asyncio.Event().wait()
        return told

    async def calls() -> None:
        nonlocal slow
        petstore = AsyncPetstore(ADDRESS, KEY, transport=httpx2.MockTransport(handle), runtime=script.runtime)
        for _ in range(5):
            begun.clear()
            probe = asyncio.create_task(petstore.categories.list())
            await begun.wait()
            probe.cancel()
            await asyncio.wait([probe])
        slow = False
        assert await petstore.categories.list() == []

    asyncio.run(calls())
    assert script.waits == [0] * 5


@pytest.mark.parametrize(
    "place", ["petstore_client.policy.read_limits", "petstore_client.limiter.Limiter._first"]
)
def test_an_interrupt_in_any_line_holds_up_no_other_call(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl+C comes while an answer is read as well as while one is waited for."""

    def interrupted(*_: object) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    with scripted("sync", answer(200, [])) as (petstore, script):
        monkeypatch.setattr(place, interrupted)
        with pytest.raises(KeyboardInterrupt):
            petstore.categories.list()
        assert petstore.with_options(seconds=0).categories.list() == []
    assert script.clock.monotonic() == script.times[0]


def test_the_log_has_a_line_for_each_wait_of_a_call(
    scripted: Scripted, caplog: pytest.LogCaptureFixture
) -> None:
    """The line has the wait's length. A quarter of a second is added to a reset that other processes wait for
    too."""
    caplog.set_level("INFO", logger="petstore_client")
    used_up = [answer(200, [], left=0, reset=seconds) for seconds in (1, 40, 7)]
    petstore, _ = scripted(*used_up, answer(200, []))
    for _ in range(4):
        petstore.categories.list()
    lengths = [message.removeprefix("listCategories waited ") for message in caplog.messages]
    assert lengths == ["1.0 s: the limit", "40.2 s: the limit", "7.2 s: the limit"]
