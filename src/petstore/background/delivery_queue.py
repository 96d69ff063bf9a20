"""The deliveries of one webhook: first attempts in the order of the feed, repetitions beside them.

A webhook that is down gets one attempt at a time, and its events wait at its bookmark.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import deque
from collections.abc import Coroutine, Sequence
from itertools import takewhile

import msgspec
import structlog

from petstore.background.delivery_attempts import AttemptRunner, Tools
from petstore.core.deliverers import OwnedWebhook, Settled
from petstore.core.errors import EventsGone, StoreUnavailable
from petstore.core.events import Bookmark, Event, EventQuery, Position
from petstore.core.webhooks import DeliveryAttempt, Repetition, entry_types_of

_PAGE = 50
# Outcomes of attempts are saved when this many have ended, or after this long.
_NOTED_AT = 50
_NOTED_SECONDS = 1.0
_WAIT_SECONDS = 1.0

_log = structlog.get_logger("petstore.webhooks")


class _First(msgspec.Struct, eq=False):
    """A read event: once its first attempt and those before it have ended, the bookmark is `after`."""

    event: Event
    after: Bookmark
    has_ended: bool = False


class _End(msgspec.Struct, eq=False):
    """An attempt that has ended: a first one, or a repetition. Without `found` there was nothing to send."""

    first: _First | None
    repetition: Repetition | None
    found: DeliveryAttempt | None
    next_repetition: Repetition | None


class DeliveryQueue:
    """The deliveries of a webhook that this process has. `wake` them when there may be something to do."""

    def __init__(self, webhook: OwnedWebhook, repetitions: list[Repetition], tools: Tools) -> None:
        self._tools = tools
        self._runner = AttemptRunner(webhook, tools)
        self._noted_to = self._read_to = webhook.after  # up to which everything is saved, and read
        self._scheduled = sorted(repetitions)
        self._open: deque[_First] = deque()  # what was read after `_noted_to`
        self._first: deque[_First] = deque()  # those in `_open` that have not begun
        self._under_way: set[asyncio.Task[_End]] = set()
        self._repeating: set[Repetition] = set()
        self._ended: list[_End] = []
        # Repetitions that were saved as over and as new while others were read.
        self._over: set[Repetition] = set()
        self._new: set[Repetition] = set()
        self._noting: tuple[set[Repetition], set[Repetition]] = set(), set()
        self._noted_at = 0.0
        self._may_have_more = True
        self._task: asyncio.Task[None] | None = None
        self.is_lost = False
        self.entry_types = entry_types_of(webhook.types)

    @property
    def webhook(self) -> OwnedWebhook:
        return self._runner.webhook

    def is_still(self, webhook: OwnedWebhook) -> bool:
        """Whether it may go on: nobody else had the webhook, or has moved, ended or begun its deliveries."""
        return not self.is_lost and self.webhook.revision == webhook.revision

    def configure(self, webhook: OwnedWebhook, repetitions: list[Repetition]) -> None:
        """Go by what the store said: another URL, other secrets, what is to be sent again."""
        self._runner.configure(webhook)
        known = {*self._over, *self._repeating, *(each.repetition for each in self._ended)}
        self._scheduled = sorted({*repetitions, *self._new} - known)

    def await_repetitions(self) -> None:
        """The store is asked now; `configure` is called then."""
        self._over, self._new = (set(noted) for noted in self._noting)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way, and everything that ended is saved."""
        return self._task is None

    @property
    def has_read_all(self) -> bool:
        """Whether it has every event up to the last poll of the journal."""
        return not (self._may_have_more or self._open)

    @property
    def wakes_at_ms(self) -> int | None:
        """When there is something to do again; None where only an event brings it about."""
        paused_until_ms = self._runner.paused_until_ms
        moments = [self._runner.soonest_ms(self._scheduled)] if self._scheduled else []
        if not (self.has_read_all or (self._scheduled and self._runner.health.is_down)):
            moments.append(paused_until_ms)
        return min(moments, default=None)

    def expect(self, since: Position) -> None:
        """There may be an event after `since`; if everything was read, there was none up to it."""
        if self.is_idle and self.has_read_all and since > self._read_to.position:
            self.move(Bookmark(self._read_to.data_set, since))
        self._may_have_more = True
        self.wake()

    def can_move_to(self, bookmark: Bookmark) -> bool:
        """Whether everything before it is read and saved, and it is later; a queue may be ahead of a poll."""
        is_ready = self.is_idle and not self.is_lost and self.has_read_all
        return is_ready and bookmark.position > self._noted_to.position

    def move(self, bookmark: Bookmark) -> None:
        """There was nothing for it up to a bookmark that it can move to."""
        self._read_to = self._noted_to = bookmark

    def wake(self) -> None:
        if self._task is None and not self.is_lost and self._can_begin():
            self._task = asyncio.create_task(self._run())

    def leave(self) -> None:
        """Begin no more attempts; the outcomes of those under way are saved."""
        self.is_lost = self._runner.is_over = True

    @staticmethod
    async def close(those: Sequence[DeliveryQueue], timeout_seconds: float) -> None:
        """Begin no more attempts of all these; wait for those under way for `timeout_seconds`, together."""
        for each in those:
            each.leave()
        busy = {each._task: each for each in those if each._task is not None}
        if busy:
            await asyncio.wait(busy, timeout=timeout_seconds)
            for attempt in [attempt for each in busy.values() for attempt in each._under_way]:
                attempt.cancel()
            await asyncio.wait(busy, timeout=_WAIT_SECONDS)
            for task in busy:
                task.cancel()
            await asyncio.wait(busy)

    async def _run(self) -> None:
        try:
            while await self._go_on():
                pass
        except Exception as error:  # of any kind: the others go on
            _log.error("deliveries failed", webhook=self.webhook.id, exc_info=error)
            self.is_lost = True
        finally:
            for task in self._under_way:
                task.cancel()
            self._task = None

    async def _go_on(self) -> bool:
        """A step; False when there is nothing to do."""
        try:
            if not self.is_lost:
                await self._read()
                self._begin()
            if self._under_way:
                done, _ = await asyncio.wait(
                    self._under_way, timeout=_NOTED_SECONDS, return_when=asyncio.FIRST_COMPLETED
                )
                self._under_way -= done
                for task in done:
                    if not task.cancelled():
                        self._end(task.result())
            if self._is_time_to_note():
                await self._note()
        except StoreUnavailable:
            await asyncio.sleep(_WAIT_SECONDS)
            return not self.is_lost
        return bool(self._under_way or self._ended or (not self.is_lost and self._can_begin()))

    async def _read(self) -> None:
        """Have the next events at hand, if one may begin."""
        if self._first or not self._may_have_more or self._is_held():
            return
        async with self._tools.reading:
            if self.is_lost:
                return
            await asyncio.sleep(0)  # SQLite answers at once: thousands of webhooks would hold the loop
            query = EventQuery(_PAGE, self.webhook.account_id, self.entry_types, self._read_to)
            self._may_have_more = False
            try:
                page = await self._tools.events.page(query)
            except EventsGone:
                page = None
            except StoreUnavailable:
                self._may_have_more = True
                raise
        if page is None:
            await self._leave_gap()
            return
        self._read_to = page.after
        self._may_have_more = self._may_have_more or bool(page.events) or page.is_behind
        for event, position in zip(page.events, page.positions, strict=True):
            self._first.append(_First(event, Bookmark(page.after.data_set, position)))
        self._open.extend(self._first)
        if self._open:
            self._open[-1].after = page.after
        else:
            self._noted_to = page.after

    async def _leave_gap(self) -> None:
        self._may_have_more = True
        if self._open:  # what was read comes to its end before
            return
        tools, webhook, before = self._tools, self.webhook, self._read_to
        self._read_to = await tools.deliverers.go_on(tools.owner, webhook, before)
        self._noted_to = self._read_to
        if self._noted_to.position != before.position:
            _log.warning("events left out", webhook=webhook.id, after=str(self._noted_to))

    def _is_held(self) -> bool:
        """Whether no first attempt may begin: one that is down has something to repeat instead."""
        now_ms = self._tools.clock.now_ms()
        is_held = self._runner.health.is_down and bool(self._scheduled or self._under_way)
        return is_held or self._runner.paused_until_ms > now_ms or self._runner.disabled_reason is not None

    def _can_begin(self) -> bool:
        has_first = not self._is_held() and bool(self._first or self._may_have_more)
        return has_first or self._runner.index_of_startable(self._scheduled) is not None

    def _begin(self) -> None:
        """Begin as many attempts as may be under way; of more than one at most half are repetitions."""
        allowed = self._runner.window
        while len(self._under_way) < allowed:
            has_first = bool(self._first) and not self._is_held()
            index = self._runner.index_of_startable(self._scheduled)
            if index is not None and (not has_first or len(self._repeating) < max(1, allowed // 2)):
                repetition = self._scheduled.pop(index)
                self._repeating.add(repetition)
                self._start(self._attempt_again(repetition))
            elif has_first:
                self._start(self._attempt_first(self._first.popleft()))
            else:
                return

    def _start(self, attempt: Coroutine[None, None, _End]) -> None:
        self._under_way.add(asyncio.create_task(attempt))

    async def _attempt_first(self, first: _First) -> _End:
        return _End(first, None, *await self._runner.send(first.event))

    async def _attempt_again(self, repetition: Repetition) -> _End:
        return _End(None, repetition, *await self._runner.repeat(repetition))

    def _end(self, ended: _End) -> None:
        self._ended.append(ended)
        if ended.first is not None:
            ended.first.has_ended = True
        if ended.repetition is not None:
            self._repeating.discard(ended.repetition)

    def _is_time_to_note(self) -> bool:
        if not self._under_way:
            return bool(self._ended)
        waited = self._tools.clock.monotonic() - self._noted_at
        is_time = len(self._ended) >= _NOTED_AT or (bool(self._ended) and waited >= _NOTED_SECONDS)
        return is_time and self._runner.disabled_reason is None

    async def _note(self) -> None:
        """Save what has ended, and how far everything has. Raises StoreUnavailable, and is repeated."""
        ended, noted_to = self._ended[:], self._noted_to
        over = list(takewhile(lambda each: each.has_ended, self._open))
        if over:
            noted_to = over[-1].after
        settled = Settled(
            noted_to,
            self._runner.health,
            [each.found for each in ended if each.found is not None],
            [each.next_repetition for each in ended if each.next_repetition is not None],
            [each.repetition for each in ended if each.repetition is not None],
            self._runner.disabled_reason,
        )
        tools, self._noting = self._tools, (set(settled.ended_repetitions), set(settled.new_repetitions))
        self._over |= self._noting[0]
        self._new |= self._noting[1]
        if not await tools.deliverers.settle(tools.owner, self.webhook, settled):
            self.leave()
        self._noting = set(), set()
        self._noted_to = noted_to
        self._noted_at = tools.clock.monotonic()
        del self._ended[: len(ended)]
        for _ in over:
            self._open.popleft()
        for each in settled.new_repetitions:  # there may be very many, and this runs for each attempt
            index = bisect_left(self._scheduled, each)
            if self._scheduled[index : index + 1] != [each]:
                self._scheduled.insert(index, each)
        if (reason := self._runner.disabled_reason) is not None:
            _log.warning("webhook disabled", webhook=self.webhook.id, reason=reason.value)
            self.is_lost = True
