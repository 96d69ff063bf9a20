"""The page of a webhook, where others lead to it, and what operators do there."""

from __future__ import annotations

import pytest

from petstore.core.events import EventQuery
from petstore.core.limits.plans import PRO
from petstore.core.webhooks import DeliveryAttempt, DisabledReason, NewWebhook, WebhookChange
from tests.console.conftest import assert_refused, follow
from tests.support.backends import execute_in_file
from tests.support.clock import ManualClock
from tests.support.console import Visitor
from tests.support.failing_webhooks import URL, add_webhook, let_fail, note_attempts
from tests.support.journal import ACTOR, entries, written
from tests.support.service import Shop

OFF = WebhookChange(enabled=False)
_FAULT = "Expected a status from 200 to 299, got 500."


@pytest.fixture
async def failing(shop: Shop) -> str:
    """Webhook 1 fails for an hour, after a success, with an event that its account sees; that event's id."""
    await add_webhook(shop.store, description="mirror")
    await note_attempts(shop.store, 1, [DeliveryAttempt("evt_1", "pet.created", 1, 5, 204, None, "")], None)
    event_id: str = (await shop.store.events.page(EventQuery(1, 1))).events[0].id
    await let_fail(shop.store, 1, shop.clock.now_ms(), _FAULT, "<h1>Oops</h1>", event_id)
    shop.clock.advance(3_600)
    return event_id


async def disabled_by(shop: Shop) -> DisabledReason | None:
    reason: DisabledReason | None = (await shop.store.webhooks.get(1)).disabled
    return reason


class TestPage:
    """`/console/webhooks/1`."""

    async def test_what_it_is_and_what_came_back(
        self, failing: str, viewer: Visitor, operator: Visitor
    ) -> None:
        """The page has the account, the key, since when it fails, and each try; the answer is text. A viewer
        has no button; an operator has them, at failed tries alone."""
        shown = await viewer.get("webhooks/1")
        assert (
            f"URL{URL} Types* Descriptionmirror Statefailing Failing since2027-01-15 08:00:30 UTC"
            " Made2027-01-15 08:00:30 UTC with key 1" in shown.text
        )
        assert shown.links["tests"].endswith("console/accounts/1")
        assert shown.links["key 1"].endswith("console/keys/1")
        assert (
            f"pet.updated {failing} 500 120 ms {_FAULT} Next try 2027-01-15 08:00:35 UTC."
            " Answer <h1>Oops</h1>" in shown.text
        )
        assert "Webhook added" in shown.text
        assert "sealed" not in shown.body.decode()
        assert "Send again" not in shown.text
        actions = [form.action for form in (await operator.get("webhooks/1")).forms]
        assert [each.rpartition("/")[2] for each in actions] == ["search", "sign-out", "disable", "retry"]

    async def test_pages_of_fifty_tries(self, shop: Shop, viewer: Visitor) -> None:
        """The newest first; of one that arrived it says so."""
        await add_webhook(shop.store)
        tries = [DeliveryAttempt(f"evt_{n}", "pet.created", n, 5, 204, None, "") for n in range(1, 61)]
        await note_attempts(shop.store, 1, tries, None)
        first = await viewer.get("webhooks/1")
        assert "evt_60 204 5 ms Delivered." in first.text
        assert ("evt_11 " in first.text, "evt_10 " in first.text) == (True, False)
        second = await follow(viewer, first, "Older tries")
        assert ("evt_10 " in second.text, "Older tries" in second.links) == (True, False)

    async def test_a_removed_one_has_its_history(self, shop: Shop, failing: str, viewer: Visitor) -> None:
        """The journal leads there; one that never was is not found."""
        await shop.store.webhooks.remove(1, "api:tests/key 1")
        shown = await viewer.get("webhooks/1")
        assert_refused(shown, 404, "There is no webhook 1 any more: tests, key 1 removed it")
        assert (await viewer.get("journal?about=webhook:1")).links["webhook 1"].endswith("console/webhooks/1")
        assert "There is no webhook 9." in (await viewer.get("webhooks/9")).text


class TestActions:
    """Operators act, and the journal has their names."""

    async def test_an_end_and_a_beginning(self, shop: Shop, failing: str, operator: Visitor) -> None:
        """It goes on where it stopped."""
        shown = await operator.fill("webhooks/1", "/disable")
        assert "Statedisabled by an operator" in shown.text
        assert not [each for each in ("Send again", "Next try") if each in shown.text]
        assert await disabled_by(shop) is DisabledReason.OPERATOR
        shown = await operator.submit(shown, "/enable")
        assert "Stateactive" in shown.text
        assert [(entry.actor, entry.action) for entry in (await entries(shop.store, "webhook:1"))[1:]] == [
            ("console:a-operator", "disabled"),
            ("console:a-operator", "enabled"),
        ]

    async def test_from_now_on_where_it_can_not_go_on(
        self, shop: Shop, failing: str, operator: Visitor
    ) -> None:
        """The page says why, and offers it; nobody chooses it unawares."""
        await shop.store.webhooks.change(1, OFF, ACTOR)
        execute_in_file(shop.path, "UPDATE webhooks SET data_set = '0123456789ab'")
        refused = await operator.fill("webhooks/1", "/enable")
        assert_refused(refused, 409, "It can go on from now; it does not get earlier events then.")
        assert await disabled_by(shop) is not None
        shown = await operator.submit(refused, "/enable")
        assert "Webhook 1 gets events again." in shown.text
        assert (await written(shop.store, "webhook:1"))[-2:] == [
            "webhook.moved webhook:1",
            "webhook.enabled webhook:1",
        ]

    async def test_an_event_is_sent_again(self, shop: Shop, failing: str, operator: Visitor) -> None:
        """The button is at the try that failed; once the webhook is disabled the page says so."""
        page = await operator.get("webhooks/1")
        shown = await operator.submit(page, "/retry")
        assert f"Event {failing} is sent again." in shown.text
        assert (await entries(shop.store, "webhook:1"))[-1].after == {"eventId": failing}
        await shop.store.webhooks.change(1, OFF, ACTOR)
        refused = await operator.submit(page, "/retry")
        assert_refused(refused, 409, "Webhook 1 is disabled: enable it first.")

    async def test_what_no_page_sends(self, failing: str, operator: Visitor) -> None:
        """An event that there is not, and a form without one."""
        page = await operator.get("webhooks/1")
        assert (await operator.submit(page, "/retry", event="evt_1")).status == 404
        token = page.forms[0].fields["csrf"]
        assert (await operator.post("webhooks/1/retry", {"csrf": token})).status == 400


async def test_an_account_has_its_webhooks(shop: Shop, failing: str, viewer: Visitor) -> None:
    """The page links to each; an account without any has no such list."""
    shown = await viewer.get("accounts/1")
    assert f"1 {URL} failing 1 hour ago 1" in shown.text
    await shop.store.webhooks.remove(1, ACTOR)
    assert "Webhooks" not in (await viewer.get("accounts/1")).text


async def test_a_revocation_lets_the_webhooks_go_on_or_ends_them(
    shop: Shop, failing: str, operator: Visitor
) -> None:
    """The revocation of a key ends its webhooks if the box says so; it is empty at first."""
    asked = await operator.get("keys/1/revoke")
    assert f"Webhooks that it has made Number URL State Failing since Key 1 {URL}" in asked.text
    assert "with_webhooks" not in asked.form("/revoke").fields
    await operator.submit(asked, "/revoke")
    assert await disabled_by(shop) is None
    token = asked.form("/revoke").fields["csrf"]
    shown = await operator.post("keys/1/revoke", {"csrf": token, "with_webhooks": "on"})
    assert "The webhooks that it has made are disabled." in shown.text
    assert await disabled_by(shop) is DisabledReason.OPERATOR


class TestOverview:
    """Who gets no events."""

    async def test_those_that_fail(self, shop: Shop, failing: str, viewer: Visitor) -> None:
        """The account, the host, since when; a link leads to the page."""
        shown = await viewer.get()
        assert "Webhooks that fail: tests (shop.example, for 1 hour). Tell the customer" in shown.text
        assert shown.links["tests (shop.example, for 1 hour)"].endswith("console/webhooks/1")
        await shop.store.webhooks.change(1, OFF, ACTOR)
        assert "Webhooks that fail" not in (await viewer.get()).text

    async def test_it_names_a_few(self, shop: Shop, clock: ManualClock, viewer: Visitor) -> None:
        """The five that began to fail last, and that there are others."""
        new = NewWebhook(URL)
        await shop.store.accounts.set_plan("1", PRO, ACTOR)
        for number in range(1, 7):
            await shop.store.webhooks.create(1, 1, new, "sealed", ACTOR)
            await let_fail(shop.store, number, clock.now_ms() - number * 60_000)
        shown = await viewer.get()
        assert "for 5 minutes) and others. Tell the customer" in shown.text
