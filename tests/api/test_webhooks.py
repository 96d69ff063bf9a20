"""The operations on webhooks: what each answers, and where a secret is shown.

What is refused for its form, its key or its account: refusals.py. On each store:
storage/contract/test_webhooks.py.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any

import pytest

from petstore.core.events import Bookmark
from petstore.core.limits.plans import WEBHOOKS_MAX
from petstore.core.moments import iso_moment
from tests.api.test_events import after
from tests.api.world import EVENTS, URL, WEBHOOKS
from tests.ops.test_access_log import Log, log
from tests.support.journal import ACTOR
from tests.support.service import Answer, Pairs, Shop, open_shop, outsider

__all__ = ["log"]

HOOK = f"{WEBHOOKS}/1"
DAY_SECONDS = 86_400
DELIVERER = "deliverer"


async def add(shop: Shop, headers: Pairs = (), key: str | None = None, **members: object) -> Answer:
    return await shop.send("POST", WEBHOOKS, {"url": URL, **members}, headers, key=key)


async def change(shop: Shop, document: object, *headers: tuple[str, str]) -> Answer:
    return await shop.send("PATCH", HOOK, document, headers)


def without_secret(answer: Answer) -> dict[str, Any]:
    return {name: value for name, value in answer.json().items() if name != "secret"}


async def goes_on_after(shop: Shop) -> Bookmark:
    """The bookmark of the one webhook that gets something."""
    await shop.store.deliverers.claim(DELIVERER, [], is_alone=True)
    [webhook] = (await shop.store.deliverers.owned(DELIVERER)).webhooks
    bookmark: Bookmark = webhook.after
    return bookmark


class TestCreateWebhook:
    """POST /webhooks."""

    async def test_a_created_webhook_has_all_members_and_its_secret_once(self, shop: Shop) -> None:
        """All members in the documented order, with the secret last; where it is read, as it is then."""
        answer = await add(shop)
        created_at = iso_moment(shop.clock.now_ms())
        assert answer.status == 201
        assert list(answer.json().items())[:-1] == [
            ("id", 1), ("url", URL), ("types", ["*"]), ("description", ""), ("enabled", True),
            ("disabledReason", None), ("failingSince", None), ("keyId", shop.key_id),
            ("createdAt", created_at),
        ]  # fmt: skip
        assert re.fullmatch(r"whsec_[A-Za-z0-9+/]{43}=", answer.json()["secret"])
        read = await shop.ask("GET", answer.headers["location"])
        assert read.json() == without_secret(answer)
        assert read.headers["etag"] == answer.headers["etag"]
        assert "idempotency-replayed" not in answer.headers

    @pytest.mark.parametrize(
        "members",
        [
            {"url": "https://shop.example:8443/a?b=c&d=%20", "types": ["pet.*", "order.created"]},
            {"url": "https://shop.example/" + "x" * 1_979, "types": ["*"] * 50},
            {"url": "https://1.1.1.1", "description": "\u3000é😀 mirror"},
            {"url": "http://127.0.0.1:8081/hook", "description": "x" * 255},
            {"url": "HTTPS://Shop.example"},
        ],
    )
    async def test_what_it_takes(self, shop: Shop, members: dict[str, Any]) -> None:
        """A webhook takes values at their bounds, keeps each type once, and everything else as it was sent.
        Its URL may be http only because this service itself listens on this machine alone."""
        answer = await add(shop, **members)
        assert answer.status == 201
        members["types"] = list(dict.fromkeys(members.get("types", ["*"])))
        assert answer.json().items() >= {**members}.items()

    async def test_409_by_plan(self, shop: Shop) -> None:
        """One more than the plan has; a repeated request is none, and a removed webhook makes room."""
        key, _ = await shop.open_account("small")
        named = [("idempotency-key", "k")]
        for number in range(WEBHOOKS_MAX["free"]):
            assert (await add(shop, named if number == 0 else (), key)).status == 201
        refused = await add(shop, key=key)
        assert (refused.status, refused.code) == (409, "conflict")
        assert "has 3 webhooks, which is all that the plan free has" in refused.json()["message"]
        assert (await add(shop, named, key)).headers["idempotency-replayed"] == "true"
        assert (await add(shop)).status == 201  # another account's
        assert (await shop.ask("DELETE", f"{WEBHOOKS}/2", key=key)).status == 204
        assert (await add(shop, key=key)).status == 201

    async def test_http_is_refused_where_others_reach_the_service(self, tmp_path: Path) -> None:
        """This machine is refused too."""
        async with open_shop(tmp_path, host="0.0.0.0") as shop:
            for url in (
                "http://127.0.0.1:8081/hook",
                "https://127.0.0.1:8081/hook",
                "https://localhost/hook",
            ):
                answer = await add(shop, url=url)
                assert (answer.status, answer.code) == (400, "invalid_body")
                assert "127.0.0.1, a loopback address" in answer.json()["message"]

    async def test_a_url_that_may_not_be_called_is_named_with_the_other_faults(self, shop: Shop) -> None:
        """A new webhook and a change get all faults at once, so that nobody mends them one by one."""
        await add(shop)
        members = {"url": "foo", "types": ["x"], "description": 5}
        for method, path in (("POST", WEBHOOKS), ("PATCH", HOOK)):
            answer = await shop.send(method, path, members)
            assert (answer.status, answer.code) == (400, "invalid_body")
            faults = answer.json()["message"].split("; ")
            assert [fault.partition(":")[0] for fault in faults] == ["url", "types", "description"]


class TestReplay:
    """POST /webhooks with Idempotency-Key."""

    async def test_it_shows_the_secret_again(self, shop: Shop) -> None:
        """A replay has the answer and a mark, of one webhook; after a change and a rotation what is true
        then."""
        named = [("idempotency-key", "k")]
        first = await add(shop, named)
        again = await add(shop, named)
        assert (again.status, again.body) == (201, first.body)
        assert again.headers["idempotency-replayed"] == "true"
        assert again.headers["location"] == first.headers["location"]
        assert again.headers["etag"] == first.headers["etag"]
        await change(shop, {"types": ["pet.*"]})
        secret = (await shop.ask("POST", f"{HOOK}/secret")).json()["secret"]
        later = (await add(shop, named)).json()
        assert (later["types"], later["secret"]) == (["pet.*"], secret)
        assert len((await shop.ask("GET", WEBHOOKS)).json()) == 1

    async def test_one_that_was_removed_is_a_conflict(self, shop: Shop) -> None:
        """The secret of a removed webhook is gone, and a replay does not make it again."""
        named = [("idempotency-key", "k")]
        await add(shop, named)
        await shop.ask("DELETE", HOOK)
        answer = await add(shop, named)
        assert (answer.status, answer.code) == (409, "conflict")
        assert "was removed; use a new key" in answer.json()["message"]
        assert (await shop.ask("GET", WEBHOOKS)).json() == []


class TestSecrets:
    """Secrets stand in few places."""

    async def test_a_secret_is_nowhere_else(self, log: Log) -> None:
        """A webhook's secret is in no answer but those that make it, nor in journal, events or log."""
        async with log.shop() as shop:
            secrets = [(await add(shop)).json()["secret"]]
            secrets.append((await shop.ask("POST", f"{HOOK}/secret")).json()["secret"])
            answers = [
                await shop.ask("GET", HOOK),
                await shop.ask("GET", WEBHOOKS),
                await change(shop, {"description": "x", "enabled": False}),
                await shop.ask("GET", f"{HOOK}/deliveries"),
                await shop.ask("GET", EVENTS),
            ]
            with outsider(shop.path) as connection:
                rows = connection.execute("SELECT * FROM journal").fetchall()
        shown = b"".join(answer.body + repr(answer.raw_headers).encode() for answer in answers)
        logged = (log.folder / "log").read_bytes()
        assert "rotated" in repr(rows)
        assert b"/webhooks/{webhookId}/secret" in logged
        for secret in secrets:
            assert secret.removeprefix("whsec_") not in shown.decode() + repr(rows) + logged.decode()
        assert b"whsec_" not in shown + logged

    async def test_they_are_encrypted_at_rest(self, tmp_path: Path) -> None:
        """The file does not have them, and a repetition shows them all the same."""
        setting = urlsafe_b64encode(bytes(range(32))).decode()
        named = [("idempotency-key", "k")]
        async with open_shop(tmp_path, secrets_key=setting) as shop:
            secret = (await add(shop, named)).json()["secret"]
            assert (await add(shop, named)).json()["secret"] == secret
            with outsider(shop.path) as connection:
                [(kept,)] = connection.execute("SELECT secrets FROM webhooks").fetchall()
        assert secret.removeprefix("whsec_")[:-1] not in str(kept)

    async def test_former_ones_end_a_day_after_they_were_replaced(self, shop: Shop) -> None:
        """Five sign at once: a sixth is 409, and possible when one has ended."""
        secrets = {(await add(shop)).json()["secret"]}
        for _ in range(4):
            answer = await shop.ask("POST", f"{HOOK}/secret")
            assert answer.status == 200
            secrets.add(answer.json()["secret"])
        assert len(secrets) == 5
        refused = await shop.ask("POST", f"{HOOK}/secret")
        assert (refused.status, refused.code) == (409, "conflict")
        shop.clock.advance(DAY_SECONDS)
        assert (await shop.ask("POST", f"{HOOK}/secret")).status == 200

    async def test_a_rotation_changes_no_tag(self, shop: Shop) -> None:
        """The webhook that is read is the same; a body that is sent along is not read."""
        created = await add(shop)
        answer = await shop.send("POST", f"{HOOK}/secret", {"secret": "mine"})
        assert without_secret(answer) == without_secret(created)
        assert answer.json()["secret"] not in ("mine", created.json()["secret"])
        assert (await shop.ask("GET", HOOK)).headers["etag"] == created.headers["etag"]


class TestReading:
    """GET /webhooks and /webhooks/{webhookId}."""

    async def test_the_list_is_all_of_the_account(self, shop: Shop) -> None:
        """Ascending, a bare array, without Link."""
        other, _ = await shop.open_account("other")
        for key in (None, other, None):
            await add(shop, key=key)
        answer = await shop.ask("GET", WEBHOOKS)
        assert [each["id"] for each in answer.json()] == [1, 3]
        assert "link" not in answer.headers
        assert [each["id"] for each in (await shop.ask("GET", WEBHOOKS, key=other)).json()] == [2]
        assert answer.json()[0] == (await shop.ask("GET", HOOK)).json()


class TestUpdateWebhook:
    """PATCH /webhooks/{webhookId}."""

    async def test_what_is_not_sent_stays(self, shop: Shop) -> None:
        """Each member alone; the answer is what is read afterwards, with its tag."""
        expected = without_secret(await add(shop, types=["pet.*"], description="x"))
        for document in (
            {"url": "https://other.example"},
            {"types": ["order.*", "order.*", "pet.created"]},
            {"description": ""},
            {"enabled": False},
        ):
            answer = await change(shop, document)
            expected |= document | ({"types": ["order.*", "pet.created"]} if "types" in document else {})
            expected["disabledReason"] = None if expected["enabled"] else "owner"
            assert (answer.status, answer.json()) == (200, expected)
            read = await shop.ask("GET", HOOK)
            assert (read.json(), read.headers["etag"]) == (expected, answer.headers["etag"])

    async def test_if_match_lets_one_change_pass(self, shop: Shop) -> None:
        """The tag of a GET, once: 412 for who comes second. So with DELETE."""
        await add(shop)
        tag = (await shop.ask("GET", HOOK)).headers["etag"]
        match, kind = ("if-match", tag), ("content-type", "application/merge-patch+json")
        key = ("authorization", f"Bearer {shop.key}")
        changed = await shop.call("PATCH", HOOK, [key, kind, match], b'{"enabled":false}')
        assert changed.status == 200
        for answer in (
            await change(shop, {"enabled": True}, match),
            await shop.ask("DELETE", HOOK, [match]),
        ):
            assert (answer.status, answer.code) == (412, "precondition_failed")
        assert (await shop.ask("GET", HOOK)).json()["enabled"] is False
        assert (await change(shop, {"enabled": True}, ("if-match", "*"))).status == 200
        tag = (await change(shop, {"enabled": False})).headers["etag"]
        assert (await shop.ask("DELETE", HOOK, [("if-match", tag)])).status == 204
        assert (await shop.ask("DELETE", HOOK, [("if-match", "*")])).status == 404

    async def test_after_says_where_it_goes_on(self, shop: Shop) -> None:
        """A bookmark of the feed, and what is there now."""
        await shop.post({"name": "Rex", "categoryId": 1})
        bookmark = after(await shop.ask("GET", f"{EVENTS}?limit=1")).partition("after=")[2]
        await add(shop)
        begun = await goes_on_after(shop)
        assert str(begun) != bookmark
        assert (await change(shop, {"after": bookmark})).status == 200
        assert str(await goes_on_after(shop)) == bookmark
        assert (await change(shop, {"after": "now"})).status == 200
        assert (await goes_on_after(shop)).position >= begun.position

    async def test_410_for_one_whose_place_is_gone(self, shop: Shop) -> None:
        """A webhook whose place a restore removed is enabled only with `after`; else 410 and no change."""
        await add(shop)
        await change(shop, {"enabled": False})
        await shop.store.events.note_restore(ACTOR)
        refused = await change(shop, {"enabled": True, "description": "x"})
        assert (refused.status, refused.code) == (410, "events_gone")
        assert (await shop.ask("GET", HOOK)).json()["description"] == ""
        assert (await change(shop, {"enabled": True, "after": "now"})).json()["enabled"] is True
