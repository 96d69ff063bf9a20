"""The mail of a real service: what happens is mailed, and a stop sends nothing twice."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from petstore.core.limits.plans import FREE, PRO, Plan
from petstore.storage.store import Store
from tests.background.post import contact, words
from tests.support.backends import execute_at, in_store
from tests.support.journal import ACTOR
from tests.support.mail import Held, MailServer, serving_mail
from tests.support.server import running_server
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


class Rows:
    """The mails that wait."""

    def __init__(self, url: str) -> None:
        self._url = url

    def has_begun(self) -> bool:
        """Whether somebody gathers facts."""
        return bool(self._run("SELECT 1 FROM notified"))

    def count(self) -> int:
        return len(self._run("SELECT 1 FROM mails"))

    def end_gathering(self) -> None:
        """As if a minute had passed for those that are there."""
        wait_for(lambda: self.count() > 0, "a mail")
        self._run("UPDATE mails SET due_ms = due_ms - 60000 RETURNING id")

    def _run(self, sql: str) -> list[tuple[object, ...]]:
        return execute_at(self._url, sql)


def test_a_plan_that_changes_is_mailed_and_a_stop_waits_for_the_answer(tmp_path: Path) -> None:
    """By the background process; what the mail server takes during the stop is noted, so nothing is left that
    would come again."""
    url = f"sqlite:///{tmp_path}/petstore.db"
    with serving_mail() as mail, running_server(tmp_path, **settings(url, mail)) as server:
        rows = Rows(url)
        in_store(url, add_shop)
        wait_for(rows.has_begun, "the first look")
        in_store(url, change_plan(PRO))
        rows.end_gathering()
        wait_for(lambda: bool(mail.messages), "the mail")
        assert "it is now pro, " in words(mail.messages[0])
        assert mail.envelopes == [["shop@example.com"]]
        wait_for(lambda: rows.count() == 0, "its note")
        held = mail.answer = Held()
        in_store(url, change_plan(FREE))
        rows.end_gathering()
        wait_for(lambda: bool(held.all), "the next mail")
        server.process.send_signal(signal.SIGTERM)
        wait_for(lambda: not server.is_ready(), "the stop")
        held.open()
        assert server.terminate() == 0
        assert (len(mail.messages), rows.count()) == (2, 0)


def settings(url: str, mail: MailServer) -> dict[str, str]:
    return {"database_url": url, "smtp_url": mail.url, "mail_from": "Pet store <petstore@example.com>"}


async def add_shop(store: Store) -> None:
    await store.accounts.add("shop", FREE, ACTOR)
    await contact(store, "shop")


def change_plan(plan: Plan) -> Callable[[Store], Awaitable[object]]:
    return lambda store: store.accounts.set_plan("shop", plan, ACTOR)
