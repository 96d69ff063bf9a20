"""The page of a contact: who it is for, what it switches, and what a provider of mail asks of it."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urljoin

import pytest

from petstore.core.contacts import Contact, new_mail_token
from petstore.core.errors import StoreUnavailable
from petstore.core.mails import SWITCHES
from petstore.core.notifications import KINDS, kinds_for
from petstore.core.people import Role
from petstore.site.rendering import TemplateRenderer
from petstore.transactions.contacts import Contacts
from tests.support.answers import check_error
from tests.support.cases import every_case
from tests.support.clock import ManualClock
from tests.support.console import BROWSER
from tests.support.journal import ACTOR
from tests.support.service import Answer, Shop, open_shop, outsider

ADDRESS = "anna.o'neill@example.com"
OFF, ON = "off", "on"


async def contact_of(shop: Shop) -> Contact:
    """A contact of the shop's account."""
    added: Contact = await shop.store.contacts.add("account", "tests", ADDRESS, ACTOR)
    return added


@pytest.fixture
async def contact(shop: Shop) -> Contact:
    return await contact_of(shop)


def page_of(contact: Contact, query: str = "") -> str:
    return f"{SWITCHES}/{contact.token}{query}"


async def off(shop: Shop, contact: Contact) -> tuple[str, ...]:
    found: Contact = await shop.store.contacts.of_token(contact.token)
    return found.off


def buttons(answer: Answer) -> list[tuple[str, str]]:
    """The targets of the page's forms, and what their buttons say."""
    return re.findall(
        r'<form method="post" action="([^"]*)">\s*<button[^>]*>([^<]*)</button>\s*</form>',
        answer.body.decode(),
    )


class TestShown:
    """What a GET shows, and that it changes nothing."""

    async def test_whose_it_is_and_each_kind(self, shop: Shop, contact: Contact) -> None:
        """The address and the account's name, escaped; each kind with its sentence and one button."""
        await shop.store.contacts.switch("account", "tests", ADDRESS, ACTOR, off=["key.banned"])
        before = shop.fingerprint()
        answer = await shop.call("GET", page_of(contact), [BROWSER])
        text = answer.body.decode()
        assert answer.status == 200
        assert "anna.o&#39;neill@example.com" in text
        assert "the account <strong>tests</strong>" in text
        kinds = kinds_for("account")
        assert buttons(answer) == [
            ("?on=key.banned", "Switch on")
            if kind.name == "key.banned"
            else (f"?off={kind.name}", "Switch off")
            for kind in kinds
        ]
        places = [text.index(f'<p id="{kind.name}">{kind.what}</p>') for kind in kinds]
        assert places == sorted(places)
        assert shop.fingerprint() == before

    async def test_a_person_has_other_kinds(self, shop: Shop) -> None:
        """The page of a person has the kinds of mail that are for the store's own people."""
        await shop.store.people.add("bob", Role.STAFF, ACTOR)
        contact = await shop.store.contacts.add("person", "bob", "bob@example.com", ACTOR)
        answer = await shop.call("GET", page_of(contact), [BROWSER])
        assert "is a contact of <strong>bob</strong>" in answer.body.decode()
        assert [action for action, _ in buttons(answer)] == [
            f"?off={kind.name}" for kind in kinds_for("person")
        ]

    @pytest.mark.parametrize("state", [ON, OFF])
    async def test_what_the_mail_was_about_comes_first(
        self, shop: Shop, contact: Contact, state: str
    ) -> None:
        """The address of List-Unsubscribe, opened in a browser, asks first: programs follow links too."""
        if state == OFF:
            await shop.call("POST", page_of(contact, "?off=limit.reached"))
        before = shop.fingerprint()
        for method in ("GET", "HEAD"):
            answer = await shop.call(method, page_of(contact, "?off=limit.reached"), [BROWSER])
            assert answer.status == 200
            assert shop.fingerprint() == before
        answer = await shop.call("GET", page_of(contact, "?off=limit.reached"), [BROWSER])
        first, *others = buttons(answer)
        assert first == (
            ("?off=limit.reached", "Switch off") if state == ON else ("?on=limit.reached", "Switch on")
        )
        assert len(others) == len(kinds_for("account"))

    @every_case("query", ["?off=nothing", "?off=order.created", "?on=key.banned", "?", "?off=", "?a=b"])
    async def test_another_query_shows_the_list(self, shop: Shop, contact: Contact, query: str) -> None:
        """A kind that was there once is asked for by old mail."""
        answer = await shop.call("GET", page_of(contact, query), [BROWSER])
        assert (answer.status, len(buttons(answer))) == (200, len(kinds_for("account")))

    async def test_the_headers_of_the_page_keep_its_address_secret(
        self, shop: Shop, contact: Contact
    ) -> None:
        """Nobody keeps it, lists it, frames it, or learns its address; its forms go to its own host alone."""
        for method, query in (("GET", ""), ("POST", "?off=key.banned"), ("HEAD", "")):
            headers = (await shop.call(method, page_of(contact, query), [BROWSER])).headers
            assert headers["cache-control"] == "no-store"
            assert headers["x-robots-tag"] == "noindex"
            assert headers["referrer-policy"] == "no-referrer"
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["content-type"] == "text/html; charset=utf-8"
            assert "set-cookie" not in headers
            other = (await shop.call("GET", "/docs", [BROWSER])).headers["content-security-policy"]
            assert "form-action 'self'" in other
            assert headers["content-security-policy"] == other

    @every_case("prefix", ["", "/shop/pets"])
    async def test_the_links_of_the_page_lead_somewhere(
        self, shop: Shop, contact: Contact, prefix: str
    ) -> None:
        """They hold below a proxy's prefix, lead somewhere, and none but the forms names the contact."""
        path = page_of(contact)
        answer = await shop.call("GET", path, [BROWSER])
        text = answer.body.decode()
        assert contact.token not in text
        here = f"https://a.example{prefix}{path}"
        for reference in re.findall(r'(?:href|src)="([^"#]+)"', text):
            target = urljoin(here, reference)
            assert target.startswith(f"https://a.example{prefix}/")
            assert (await shop.call("GET", target.removeprefix(f"https://a.example{prefix}"))).status == 200
        for action, _ in buttons(answer):
            assert urljoin(here, action) == f"{here}{action}"

    async def test_what_mail_links_to_is_there(self, shop: Shop) -> None:
        """The pages that the kinds name; those of the console ask to sign in."""
        for kind in KINDS:
            if kind.page:
                page, _, place = kind.page.partition("#")
                answer = await shop.call("GET", f"/{page}", [BROWSER])
                assert answer.status == (303 if page.startswith("console/") else 200), kind.name
                assert not place or f'id="{place}"' in answer.body.decode(), kind.name


class TestSwitched:
    """What a POST does."""

    async def test_off_and_on(self, shop: Shop, contact: Contact) -> None:
        """A page, never a redirect, that says what was done; repeated it is not an error, and no entry."""
        what = next(kind.what for kind in KINDS if kind.name == "key.banned")
        for query, said, expected in (
            ("?off=key.banned", f"You get no more mail of this: {what}", ("key.banned",)),
            ("?on=key.banned", f"You get mail of this again: {what}", ()),
        ):
            for _ in range(2):
                answer = await shop.call("POST", page_of(contact, query), [BROWSER])
                assert answer.status == 200
                assert said in " ".join(re.sub("<[^>]*>", "", answer.body.decode()).split())
                assert await off(shop, contact) == expected
                assert len(buttons(answer)) == len(kinds_for("account"))
        with outsider(shop.path) as connection:
            entries = connection.execute(
                "SELECT actor FROM journal WHERE action = 'contact_changed'"
            ).fetchall()
        assert entries == [(f"mail:contact {contact.id}",)] * 2

    @pytest.mark.parametrize(
        ("headers", "body"),
        [
            ([("content-type", "application/x-www-form-urlencoded")], b"List-Unsubscribe=One-Click"),
            (
                [("content-type", "multipart/form-data; boundary=x")],
                b'--x\r\ncontent-disposition: form-data; name="List-Unsubscribe"\r\n\r\nOne-Click\r\n--x--',
            ),
            ([("content-type", "text/plain")], b"\xff\x00"), ([], b""), ([("origin", "null")], b""),
            ([("accept", "application/json")], b""), ([("sec-fetch-site", "cross-site")], b"on=key.expiring"),
        ],
    )  # fmt: skip
    async def test_whatever_the_body_is(
        self, shop: Shop, contact: Contact, headers: list[tuple[str, str]], body: bytes
    ) -> None:
        """One click (RFC 8058, section 3.1) needs no cookie and no earlier form, and takes any body."""
        answer = await shop.call("POST", page_of(contact, "?off=key.expiring"), headers, body)
        assert (answer.status, await off(shop, contact)) == (200, ("key.expiring",))

    async def test_a_body_that_never_ends_is_not_waited_for(self, shop: Shop, contact: Contact) -> None:
        """Nothing is read of it."""
        answer = await shop.stall(
            "POST", page_of(contact, "?off=key.expiring"), [("content-length", "999999999")]
        )
        assert (answer.status, await off(shop, contact)) == (200, ("key.expiring",))

    async def test_by_every_process(self, tmp_path: Path, clock: ManualClock) -> None:
        """It needs no console; what another process switched meanwhile is shown, also after a restart."""
        async with open_shop(tmp_path, clock, console="off") as shop:
            contact = await contact_of(shop)
            assert (await shop.call("POST", page_of(contact, "?off=key.banned"))).status == 200
            await shop.store.contacts.switch("account", "tests", ADDRESS, ACTOR, off=["key.expiring"])
            for _ in range(2):
                shown = buttons(await shop.call("GET", page_of(contact)))
                assert {("?on=key.banned", "Switch on"), ("?on=key.expiring", "Switch on")} <= set(shown)
                await shop.restart()


class TestRefused:
    """Pages for browsers, JSON for programs."""

    @staticmethod
    async def refused(shop: Shop, method: str, target: str, status: int) -> Answer:
        """A refusal that changed nothing, in both forms; the form for programs."""
        before = shop.fingerprint()
        page = await shop.call(method, target, [BROWSER])
        assert (page.status, page.headers["content-type"]) == (status, "text/html; charset=utf-8")
        answer = await shop.call(method, target, [("accept", "*/*")])
        assert answer.status == status
        check_error(answer)
        assert shop.fingerprint() == before
        for each in (page, answer):
            assert each.headers["cache-control"] == "no-store"
            assert "location" not in each.headers
        return answer

    @every_case("token", ["wrong-wrong-wrong-wron", "x", "%00", "%FF", "a" * 2_000, "é"])
    @pytest.mark.parametrize(
        ("method", "query"), [("GET", ""), ("HEAD", ""), ("POST", "?off=key.banned"), ("POST", "")]
    )
    async def test_404_for_another_token(
        self, shop: Shop, contact: Contact, token: str, method: str, query: str
    ) -> None:
        """Another token is answered with 404, in words that name nothing that was sent."""
        if method == "HEAD":
            assert (await shop.call("HEAD", f"{SWITCHES}/{token}{query}")).status == 404
            return
        answer = await self.refused(shop, method, f"{SWITCHES}/{token}{query}", 404)
        assert "This link no longer works" in answer.json()["message"]
        assert token == "x" or token not in answer.body.decode()

    async def test_404_once_the_contact_is_removed(self, shop: Shop, contact: Contact) -> None:
        """The contact's links are in old mail."""
        await shop.store.contacts.remove("account", "tests", ADDRESS, ACTOR)
        for method, query in (("GET", ""), ("POST", "?off=key.banned")):
            await self.refused(shop, method, page_of(contact, query), 404)

    @every_case("path", [SWITCHES, f"{SWITCHES}/", f"{SWITCHES}/a/b"])
    async def test_404_beside_it(self, shop: Shop, path: str) -> None:
        """There is no list of contacts."""
        await self.refused(shop, "GET", path, 404)

    @every_case(
        "query",
        [
            "", "?off=", "?off=nothing", "?off=order.created", "?KEY=key.banned", "?off=%FF", "?off=<script>",
            "?off=key.banned&off=key.expiring", "?off=key.banned&on=key.banned",
        ],
    )  # fmt: skip
    async def test_400_without_one_kind(self, shop: Shop, contact: Contact, query: str) -> None:
        """It says how to ask, and repeats nothing."""
        answer = await self.refused(shop, "POST", page_of(contact, query), 400)
        assert answer.code == "invalid_parameter"
        for kind in KINDS:
            assert (kind.name in answer.json()["message"]) == (kind.to == "account")

    @every_case("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "FOO"])
    async def test_another_method_than_get_head_and_post_is_405(
        self, shop: Shop, contact: Contact, method: str
    ) -> None:
        """The answer names the three that the page takes."""
        answer = await self.refused(shop, method, page_of(contact, "?off=key.banned"), 405)
        assert answer.headers["allow"] == "GET, HEAD, POST"

    @pytest.mark.parametrize("method", ["GET", "POST"])
    async def test_503_without_a_store(
        self, shop: Shop, contact: Contact, monkeypatch: pytest.MonkeyPatch, method: str
    ) -> None:
        """Programs try again by Retry-After; nobody learns what is broken."""

        async def fail(*_: object) -> None:
            raise StoreUnavailable("postgresql://secret is away", public="The store is away.")

        monkeypatch.setattr(Contacts, "of_token", fail)
        for headers in ([BROWSER], []):
            answer = await shop.call(method, page_of(contact, "?off=key.banned"), headers)
            assert (answer.status, answer.headers["retry-after"]) == (503, "1")
            assert b"secret" not in answer.body
            assert b"The store is away." in answer.body


class TestCost:
    """What strangers, and those who have a link, can make the service do."""

    async def test_a_flood_of_wrong_tokens(
        self, shop: Shop, contact: Contact, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Each is one read of the store: nothing is written, and one page is rendered for all."""
        rendered: list[str] = []

        def error(_: object, status: int, message: str, root: str) -> str:
            rendered.append(message)
            return f"{status}{root}"

        def write(*_: object, **__: object) -> None:
            raise AssertionError("a write for a wrong token")

        monkeypatch.setattr(TemplateRenderer, "error", error)
        monkeypatch.setattr(TemplateRenderer, "switches", error)
        monkeypatch.setattr(Contacts, "switch_by_token", write)
        for number in range(50):
            for method, query in (("GET", ""), ("GET", f"?off={number}"), ("POST", "?off=key.banned")):
                answer = await shop.call(method, f"{SWITCHES}/{new_mail_token()}{query}", [BROWSER])
                assert answer.status == 404
        assert len(rendered) == 1

    async def test_changes_have_a_budget(self, shop: Shop, contact: Contact) -> None:
        """Each is an entry of the journal. Beyond it they are 503 for a while; what repeats goes on."""
        states = [f"?{state}=key.banned" for _ in range(40) for state in (OFF, ON)]
        answers = [await shop.call("POST", page_of(contact, query)) for query in states]
        assert [answer.status for answer in answers] == [200] * 60 + [503, 200] * 10
        assert answers[-2].headers["retry-after"] == "1"
        assert (await shop.call("GET", page_of(contact))).status == 200
        shop.clock.advance(1)
        assert (await shop.call("POST", page_of(contact, "?off=key.banned"))).status == 200
