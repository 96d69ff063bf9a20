"""A process that sends mail, without its loop and by a steered clock, and contacts that get it.

As a program (URL of the store, URL of the mail server, time in ms) it sends what is due until it is killed.
"""

from __future__ import annotations

import asyncio
import sys
from email.headerregistry import Address
from email.message import EmailMessage

from petstore.background.mailing import Mailer
from petstore.background.notifier import Notifier
from petstore.config.values import mail_server
from petstore.core.contacts import Subject
from petstore.core.mails import Letterhead
from petstore.storage.backend import backend_for
from petstore.storage.store import Store
from tests.storage.contract.test_events import settled
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR
from tests.support.mail import MailServer

HEAD = Letterhead(Address("Pet store", addr_spec="shop@example.com"), "https://shop.example")


class Post:
    """The mail of a process. `came` is what it heard of each mail."""

    def __init__(self, store: Store, mail: MailServer | str, clock: ManualClock) -> None:
        server = mail_server(mail if isinstance(mail, str) else mail.url)
        assert server is not None
        self.came: list[str] = []
        self.notifier = Notifier(store, Mailer(server), HEAD, clock, mailed=self.came.append)
        self._store, self.clock = store, clock

    async def work(self) -> None:
        """Make the mails of all that is written, and send what is due."""
        await settled(self._store)
        await self.notifier.gather_and_send()

    async def after(self, seconds: float = 60) -> None:
        """Work, and again when what it gathered is due."""
        await self.work()
        self.clock.advance(seconds)
        await self.work()


async def contact(store: Store, of: str, address: str = "", subject: Subject = "account") -> None:
    """An address, by default that of the name."""
    await store.contacts.add(subject, of, address or f"{of}@example.com", ACTOR)


def words(message: EmailMessage) -> str:
    """What a reader reads of it, in one line."""
    body = message.get_body(("plain",))
    assert body is not None
    return " ".join(body.get_content().split())


def recipients(mail: MailServer) -> list[str]:
    """Whom it has taken mail for, in order of their addresses."""
    return sorted(address for (address,) in mail.envelopes)


async def _main(store_url: str, mail_url: str, now_ms: str) -> None:
    clock = ManualClock(int(now_ms))
    post = Post(backend_for(store_url).open(clock), mail_url, clock)
    while True:
        await post.notifier.gather_and_send()


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
