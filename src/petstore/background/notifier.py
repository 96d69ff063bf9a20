"""Sends mail to contacts: makes the mails of new entries, and sends those that are due one by one.

Trouble of the server is not a mail's fault: all wait, and one tries until it goes on.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import structlog

from petstore.background.mailing import Mailer, MailRefused, ServerTrouble
from petstore.core.clock import Clock
from petstore.core.errors import StoreUnavailable
from petstore.core.events import RESTORED, Bookmark
from petstore.core.mails import Letterhead, Mail, compose
from petstore.core.notifications import BY_ENTRY
from petstore.core.webhooks import SPREAD, next_attempt_ms
from petstore.transactions.notifications import Ended, GivenUp
from petstore.transactions.store import Repositories

_POLL_SECONDS = 2.0
# How often the store's own bookmark is moved while there is nothing for anybody; a restore is seen by then.
_GATHER_SECONDS = 60.0
_STOP_SECONDS = 3.0
# After trouble of the server; twice as long each time.
_FIRST_PAUSE_SECONDS = 5.0
_PAUSE_MAX_SECONDS = 300.0

# What a trouble is of: the store, or the mail server.
_STORE, _SERVER = "store", "server"

_log = structlog.get_logger("petstore.mail")


class Notifier:
    """The mail of this process. Any number of processes share the mails of a store."""

    def __init__(
        self,
        store: Repositories,
        mailer: Mailer,
        head: Letterhead,
        clock: Clock,
        *,
        mailed: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`mailed` hears the outcome of each mail: `sent`, `failed` or `given_up`."""
        self._store, self._mailer, self._head, self._clock = store, mailer, head, clock
        self._mailed = mailed
        self._bookmark: Bookmark | None = None
        self._gathered_at = float("-inf")
        self._pause_seconds = 0.0
        self._paused_until = float("-inf")
        self._troubles: set[str] = set()
        self._ended: Ended | None = None  # not saved yet
        self._is_stopping = False

    async def run(self) -> None:
        """Send until cancelled; then a mail that is under way has some seconds to end."""
        round_: asyncio.Task[None] | None = None
        try:
            while True:
                round_ = asyncio.create_task(self._round())
                await asyncio.shield(round_)
                await asyncio.sleep(_POLL_SECONDS)
        finally:
            self._is_stopping = True
            if round_ is not None:
                await asyncio.wait([round_], timeout=_STOP_SECONDS)
                round_.cancel()
                await asyncio.wait([round_])

    async def _round(self) -> None:
        try:
            await self.gather_and_send()
            self._go_on(_STORE)
        except StoreUnavailable as error:
            self._complain(_STORE, error.message)
        except Exception as error:  # of any kind: the jobs of this process go on
            _log.error("mail waits", exc_info=error)

    async def gather_and_send(self) -> None:
        """Make the mails of new entries, and send what is due. Raises StoreUnavailable."""
        if await self._is_time_to_gather():
            self._bookmark = await self._store.notifications.gather(self._bookmark)
            self._gathered_at = self._clock.monotonic()
        if self._clock.monotonic() >= self._paused_until:
            await self._send()

    async def _is_time_to_gather(self) -> bool:
        if self._bookmark is None or self._clock.monotonic() - self._gathered_at >= _GATHER_SECONDS:
            return True
        while True:
            summary = await self._store.events.summary_after(self._bookmark.position)
            if any(entry in BY_ENTRY or entry == RESTORED for entry, _ in summary.types_and_owners):
                return True
            if summary.position == self._bookmark.position:
                return False
            self._bookmark = Bookmark(self._bookmark.data_set, summary.position)

    async def _send(self) -> None:
        try:
            while (mail := await self._next()) is not None:
                self._ended = await self._try(mail)
                if not self._ended.is_try:
                    break
            if self._ended is not None:
                await self._store.notifications.note(self._ended)
                self._ended = None
        finally:
            await self._mailer.close()

    async def _next(self) -> Mail | None:
        """Save the outcome of the last one, and take another."""
        while not self._is_stopping:
            found = await self._store.notifications.next(self._ended)
            self._ended = None
            if not isinstance(found, GivenUp):
                return found
            self._give_up(found.mail, found.reason)
        return None

    async def _try(self, mail: Mail) -> Ended:
        if self._is_stopping:
            return Ended(mail, "", self._clock.now_ms(), is_try=False)
        try:
            await self._mailer.send(compose(mail, self._head, self._clock.now_ms()))
        except ServerTrouble as error:
            return self._pause(mail, str(error))
        except MailRefused as error:
            ended = self._refused(mail, str(error), is_final=error.is_unknown_recipient)
        else:
            ended = Ended(mail)
            self._mailed("sent")
            _log.info("mail sent", kind=mail.kind, contact=mail.contact_id, facts=mail.count)
        self._go_on(_SERVER)
        self._pause_seconds = 0.0
        return ended

    def _refused(self, mail: Mail, fault: str, *, is_final: bool) -> Ended:
        now_ms = self._clock.now_ms()
        again_ms = next_attempt_ms(mail.tries + 1, now_ms, random.uniform(-SPREAD, SPREAD))
        if is_final or again_ms is None:
            self._give_up(mail, fault)
            return Ended(mail, fault)
        self._mailed("failed")
        return Ended(mail, fault, again_ms)

    def _pause(self, mail: Mail, fault: str) -> Ended:
        """The mail is due at once: another process may reach the server."""
        self._pause_seconds = min(self._pause_seconds * 2 or _FIRST_PAUSE_SECONDS, _PAUSE_MAX_SECONDS)
        self._paused_until = self._clock.monotonic() + self._pause_seconds
        self._mailed("failed")
        self._complain(_SERVER, f"{self._mailer.where}: {fault}")
        return Ended(mail, fault, self._clock.now_ms(), is_try=False)

    def _give_up(self, mail: Mail, reason: str) -> None:
        self._mailed("given_up")
        _log.warning("mail given up", kind=mail.kind, contact=mail.contact_id, reason=reason)

    def _complain(self, of: str, reason: str) -> None:
        """Log each trouble once."""
        if of not in self._troubles:
            self._troubles.add(of)
            _log.warning("mail waits", reason=reason)

    def _go_on(self, of: str) -> None:
        if of in self._troubles:
            self._troubles.remove(of)
            _log.info("mail goes on", message="")
