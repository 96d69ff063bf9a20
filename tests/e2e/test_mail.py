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
from tests.support.mail import Held, serving_mail
from tests.support.server import running_server
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def waiting(url: str) -> int:
    """How many mails wait."""
    return len(execute_at(url, "SELECT 1 FROM mails"))


def end_gathering(url: str) -> None:
    """Make the mails that are there due now, as if a minute had passed."""
    wait_for(lambda: waiting(url) > 0, "a mail")
    execute_at(url, "UPDATE mails SET due_ms = due_ms - 60000 RETURNING id")


def test_a_plan_that_changes_is_mailed_and_a_stop_waits_for_the_answer(tmp_path: Path) -> None:
    """The background process mails it; what the mail server takes during the stop is noted, so nothing is
    left that would come again."""
    url = f"sqlite:///{tmp_path}/petstore.db"
    sender = {"mail_from": "Pet store <petstore@example.com>"}
    with serving_mail() as mail, running_server(tmp_path, smtp_url=mail.url, **sender) as server:
        in_store(url, add_shop)
        wait_for(lambda: bool(execute_at(url, "SELECT 1 FROM notified")), "the first look")
        in_store(url, change_plan(PRO))
        end_gathering(url)
        wait_for(lambda: bool(mail.messages), "the mail")
        assert "it is now pro, " in words(mail.messages[0])
        assert mail.envelopes == [["shop@example.com"]]
        wait_for(lambda: waiting(url) == 0, "its note")
        held = mail.answer = Held()
        in_store(url, change_plan(FREE))
        end_gathering(url)
        wait_for(lambda: bool(held.all), "the next mail")
        server.process.send_signal(signal.SIGTERM)
        wait_for(lambda: not server.is_ready(), "the stop")
        held.open()
        assert server.terminate() == 0
        assert (len(mail.messages), waiting(url)) == (2, 0)


async def add_shop(store: Store) -> None:
    await store.accounts.add("shop", FREE, ACTOR)
    await contact(store, "shop")


def change_plan(plan: Plan) -> Callable[[Store], Awaitable[object]]:
    return lambda store: store.accounts.set_plan("shop", plan, ACTOR)
