"""The way in and out: one-time links, passwords and sessions, and what is refused on the way."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from argon2 import PasswordHasher

from petstore.console.passwords import Passwords
from petstore.core.errors import Unavailable
from tests.console.conftest import OTHER, PASSWORD, assert_refused, invited, signs_in
from tests.support.backends import execute_in_file
from tests.support.cases import every_case
from tests.support.clock import ManualClock
from tests.support.console import Visitor
from tests.support.journal import written
from tests.support.service import Pairs, Shop, open_shop
from tests.support.sign_ins import COMPARED, compared, replicas, storm

ELSEWHERE = "198.51.100.9"


async def test_from_the_link_to_the_end_of_the_session(shop: Shop, anna: Visitor) -> None:
    """The link asks for a password and opens a session; signed out, the password opens the next."""
    assert set(anna.cookies) >= {"petstore-session"}
    ended = dict(anna.cookies)
    shown = await anna.submit(await anna.get(), "sign-out")
    assert (shown.address, "signed out" in shown.text) == ("/console/sign-in", True)
    anna.cookies = ended
    assert (await anna.get()).address == "/console/sign-in"
    shown = await signs_in(anna, path="me")
    assert (shown.address, shown.status) == ("/console/me", 200)
    assert await written(shop.store, "person:anna") == [
        "person.added person:1",
        "person.password_set person:1",
    ]


class TestLinks:
    async def test_looking_at_a_link_uses_nothing(self, shop: Shop) -> None:
        """Programs open links to preview them; a refused password does not use it either."""
        link, anna = await invited(shop), Visitor(shop)
        for _ in range(3):
            shown = await Visitor(shop).get(link)
            assert "Welcome, anna" in shown.text
            # The page's files are asked for without its address: a log may have whom a request came from.
            assert shown.headers["referrer-policy"] == "strict-origin"
        for password, again, fault in (("short", "short", "at least 12"), (PASSWORD, OTHER, "not the same")):
            shown = await anna.fill(link, "", password=password, again=again)
            assert_refused(shown, 400, fault)
            assert PASSWORD not in shown.body.decode()
        assert (await anna.fill(link, "", password=PASSWORD, again=PASSWORD)).status == 200

    async def test_a_browser_cuts_nothing_off_a_new_password(self, shop: Shop) -> None:
        """A new password's field has no `maxlength`, which cuts in silence; one too long is refused."""
        anna, too_long = Visitor(shop), "a dog, a cat and a bird " * 6
        link = await invited(shop)
        page = await anna.get(link)
        assert b"maxlength" not in page.body
        shown = await anna.submit(page, "", password=too_long, again=too_long)
        assert_refused(shown, 400, "at most 128 characters")

    async def test_a_used_link_says_so(self, shop: Shop) -> None:
        """410, for the page and for a form that was open before."""
        link, anna, second = await invited(shop), Visitor(shop), Visitor(shop)
        form = await second.get(link)
        await anna.fill(link, "", password=PASSWORD, again=PASSWORD)
        shown = await second.submit(form, "", password=OTHER, again=OTHER)
        assert_refused(shown, 410, "used already")
        assert "petstore-session" not in second.cookies
        assert (await second.get(link)).status == 410

    async def test_a_link_has_no_place_in_the_log(
        self, capfd: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        """It opens an account for a day; the log may be read by others. Nor has a password."""
        async with open_shop(tmp_path, access_log="on") as shop:
            link = await invited(shop)
            anna = Visitor(shop)
            await anna.fill(link, "", password=PASSWORD, again=PASSWORD)
        logged = capfd.readouterr().err
        assert "password set by a link" in logged
        assert '"POST","path":"/console/link/{token}"' in logged
        assert link[5:] not in logged
        assert PASSWORD not in logged


class TestSignIn:
    async def test_a_wrong_one_and_an_unknown_name_are_told_the_same(self, shop: Shop, anna: Visitor) -> None:
        """403 with the name still in its field; nobody learns who exists."""
        visitor = Visitor(shop, address=ELSEWHERE)
        pages = []
        for name in ("anna", "nina"):
            shown = await signs_in(visitor, name, "not the password")
            assert shown.status == 403
            assert shown.form("sign-in").fields["name"] == name
            pages.append(shown.text.replace(name, ""))
        assert pages[0] == pages[1]
        assert "petstore-session" not in visitor.cookies

    async def test_too_many_are_told_when_to_try_again(self, shop: Shop, anna: Visitor) -> None:
        """The sixth: 429 with Retry-After, also with the right password; elsewhere that gets in."""
        visitor = Visitor(shop, address=ELSEWHERE)
        for _ in range(5):
            await signs_in(visitor, password="not the password")
        shown = await signs_in(visitor)
        assert (shown.status, shown.headers["retry-after"]) == (429, "900")
        assert "Try again in 15 minutes" in shown.text
        assert (await signs_in(Visitor(shop))).address == "/console"

    async def test_the_device_cookie_of_an_earlier_version_goes(self, tls: Shop) -> None:
        """1.1.0 gave one to each browser; it counts for nothing and is expired at the next sign-in."""
        visitor = Visitor(tls, scheme_headers=[("x-forwarded-proto", "https")])
        host = [("host", "shop.example")]
        visitor.cookies["__Host-petstore-device"] = "x" * 43
        page = await visitor.get(await invited(tls), headers=host)
        assert "__Host-petstore-device" in visitor.cookies
        fields = {**page.forms[0].fields, "password": PASSWORD, "again": PASSWORD}
        await visitor.post(page.address.removeprefix("/console/"), fields, headers=host)
        assert "__Host-petstore-device" not in visitor.cookies

    @every_case(
        ("wanted", "comes_to"),
        [
            ("me", "/console/me"),
            ("people/of/anna.b", "/console/people/of/anna.b"),
            ("", "/console"),
            ("//evil.example", "/console"),
            ("https:evil.example", "/console"),
            ("pets%3Fq=//evil.example", "/console/pets"),
            ("%3Fq=//evil.example", "/console"),
            ("pets%3Fq=%250d%250aX-Y:%2520z", "/console"),
            ("../v1", "/console"),
            ("pets/../../v1", "/console"),
            ("sign-out", "/console"),
        ],
    )
    async def test_it_leads_to_a_page_of_the_console_alone(
        self, shop: Shop, anna: Visitor, wanted: str, comes_to: str
    ) -> None:
        """It leads where the person wanted to go, never to another site."""
        assert (await signs_in(Visitor(shop), path=f"sign-in?next={wanted}")).address == comes_to

    async def test_it_leads_back_to_what_was_searched_for(self, shop: Shop, anna: Visitor) -> None:
        """Whose session has ended goes on with the same list."""
        shown = await signs_in(Visitor(shop), path="pets?q=d%C3%B3gs+%26+co&status=sold")
        fields = shown.form("pets").fields
        assert (shown.address, fields["q"], fields["status"]) == ("/console/pets", "dógs & co", "sold")

    async def test_a_session_has_a_token_of_its_own_each_time(self, shop: Shop, anna: Visitor) -> None:
        """A token that was there before is not taken over (session fixation)."""
        first = anna.cookies["petstore-session"]
        visitor = Visitor(shop)
        visitor.cookies["petstore-session"] = "A" * 43
        await signs_in(visitor)
        assert visitor.cookies["petstore-session"] not in (first, "A" * 43)

    async def test_the_session_of_before_ends(self, shop: Shop, anna: Visitor) -> None:
        """Whoever uses a link, or signs in, in a browser that is signed in, leaves no session behind."""
        first = dict(anna.cookies)
        link = await invited(shop, "ben")
        await anna.fill(link, link, password=OTHER, again=OTHER)
        assert "ben" in (await anna.get("me")).text
        anna.cookies = first
        assert (await anna.get()).address == "/console/sign-in"

    async def test_a_session_opens_nothing_else(self, shop: Shop, anna: Visitor) -> None:
        """A session does not open /v1, nor is its token a key; and a key is no session."""
        token = anna.cookies["petstore-session"]
        assert (await shop.call("GET", "/v1/pets", [("cookie", f"petstore-session={token}")])).status == 401
        assert (await shop.ask("GET", "/v1/pets", key=token)).status == 401
        visitor = Visitor(shop)
        visitor.cookies["petstore-session"] = shop.key
        assert (await visitor.get()).address == "/console/sign-in"


class TestCookies:
    async def test_on_loopback_without_tls(self, shop: Shop) -> None:
        """HttpOnly and SameSite=Lax; no prefix and no Secure, which a browser would refuse there."""
        sent = await cookies(shop, [])
        assert set(sent) == {"petstore-form", "petstore-session", "petstore-told"}
        for name, attributes in sent.items():
            assert attributes >= {"HttpOnly", "Path=/", "SameSite=lax"}, name
            assert "Secure" not in attributes, name

    async def test_behind_a_proxy_with_tls(self, tls: Shop) -> None:
        """`__Host-` and Secure; another host of the domain can't have a page of ours say something."""
        forged = {"petstore-told": "Call%20this%20number"}
        sent = await cookies(tls, [("x-forwarded-proto", "https"), ("host", "shop.example")], **forged)
        assert len(sent) == 3
        for name, attributes in sent.items():
            assert name.startswith("__Host-petstore-")
            assert attributes >= {"HttpOnly", "Path=/", "SameSite=lax", "Secure"}, name
            assert not any(attribute.startswith("Domain") for attribute in attributes), name

    @pytest.mark.parametrize("headers", [[], [("x-forwarded-proto", "http")]])
    async def test_a_password_is_not_asked_for_without_tls(self, tls: Shop, headers: Pairs) -> None:
        """Anywhere but on a loopback address: neither on the sign-in page nor on a link's."""
        link = await invited(tls)
        visitor = Visitor(tls, scheme_headers=headers)
        for path in ("sign-in", link):
            shown = await visitor.get(path, headers=[("host", "shop.example")])
            assert (shown.status, shown.forms) == (403, [])
            assert "without TLS others on the network could read it" in shown.text

    @every_case("name", ["x-forwarded-for", "x-forwarded-proto", "forwarded", "via", "x-real-ip"])
    async def test_a_proxy_that_nobody_has_told_of_gets_no_password(self, shop: Shop, name: str) -> None:
        """It may ask for a loopback address whatever the browser asked for, and without TLS: what it says of
        the browser's counts from trusted proxies alone."""
        said = "https" if name == "x-forwarded-proto" else "203.0.113.5"
        shown = await Visitor(shop, scheme_headers=[(name, said)]).get("sign-in")
        assert_refused(shown, 403, "PETSTORE_TRUSTED_PROXIES")

    @every_case("site", [None, "same-origin"])
    @every_case("origin", ["http://shop.example", "https://192.0.2.1"])
    async def test_nor_does_one_that_adds_nothing(
        self, shop: Shop, anna: Visitor, origin: str, site: str | None
    ) -> None:
        """A proxy that adds no header, as nginx by default, is refused: a form's Origin has another name."""
        visitor = Visitor(shop)
        fields = await sign_in_form(visitor)
        headers = [("origin", origin), *([("sec-fetch-site", site)] if site else [])]
        shown = await visitor.post("sign-in", fields, headers=headers, follow=False)
        assert (shown.status, list(visitor.cookies)) == (403, ["petstore-form"])

    async def test_a_proxy_may_leave_the_port_out(self, shop: Shop, anna: Visitor) -> None:
        """deploy/nginx leaves it out of Host. Another port is another site if there is no Sec-Fetch-Site."""
        visitor, host, origin = Visitor(shop), ("host", "localhost"), ("origin", "http://localhost:9090")
        fields = await sign_in_form(visitor)
        shown = await visitor.post("sign-in", fields, headers=[host, origin], follow=False)
        assert_refused(shown, 403, "Another site")
        headers = [host, origin, ("sec-fetch-site", "same-origin")]
        assert (await visitor.post("sign-in", fields, headers=headers, follow=False)).status == 303

    async def test_an_empty_cookie_is_replaced(self, shop: Shop, anna: Visitor) -> None:
        """An empty form cookie is replaced, else no form would ever be from this browser."""
        visitor = Visitor(shop)
        visitor.cookies["petstore-form"] = ""
        assert (await signs_in(visitor)).address == "/console"

    async def test_a_strange_host_gets_no_page(self, shop: Shop, anna: Visitor) -> None:
        """DNS rebinding: a page that makes its own name resolve to this machine sends that name."""
        for path in ("", "sign-in"):
            shown = await anna.get(path, headers=[("host", "evil.example")])
            assert_refused(shown, 403, "PETSTORE_BASE_URL")


async def sign_in_form(visitor: Visitor) -> dict[str, str]:
    """Filled in by anna."""
    return {**(await visitor.get("sign-in")).form("sign-in").fields, "name": "anna", "password": PASSWORD}


async def cookies(shop: Shop, headers: Pairs, **before: str) -> dict[str, set[str]]:
    """The attributes of each cookie that the page and the use of a link set."""
    link = await invited(shop)
    visitor = Visitor(shop)
    visitor.cookies.update(before)
    page = await visitor.get(link, headers=headers)
    assert "Call this number" not in page.text
    fields = {**page.forms[0].fields, "password": PASSWORD, "again": PASSWORD}
    shown = await visitor.post(link, fields, headers=headers, follow=False)
    assert shown.status == 303
    sent = [*page.answer.raw_headers, *shown.answer.raw_headers]
    values = [value.split("; ") for name, value in sent if name == "set-cookie"]
    return {value.partition("=")[0]: set(attributes) for value, *attributes in values}


async def test_a_hash_is_argon2id_by_owasps_parameters() -> None:
    """19 MiB, two passes, one lane, and a salt of its own: two hashes of one password differ."""
    passwords = Passwords()
    first, second = await passwords.hash("caf\u00e9 au lait"), await passwords.hash("cafe\u0301 au lait")
    assert first.startswith("$argon2id$v=19$m=19456,t=2,p=1$")
    assert first != second
    assert await passwords.verify(first, "cafe\u0301 au lait")
    assert not await passwords.verify(first, "cafe au lait")
    assert not passwords.is_old(first)


async def test_a_hash_of_other_parameters_still_works_and_is_renewed(shop: Shop, anna: Visitor) -> None:
    """When OWASP asks for more one day, nobody has to set a new password."""
    old = PasswordHasher(time_cost=2, memory_cost=8, parallelism=1).hash(PASSWORD)
    execute_in_file(shop.path, f"UPDATE people SET password = '{old}'")
    with compared() as seen:
        for _ in range(2):
            assert (await signs_in(Visitor(shop), path="me")).address == "/console/me"
    assert seen == [PASSWORD] * 2
    [(renewed,)] = execute_in_file(shop.path, "SELECT password FROM people")
    assert Passwords().is_old(old)
    assert str(renewed).startswith("$argon2id$v=19$m=8,t=1,p=1$")  # as consoles in this process hash


async def test_without_a_password_a_hash_is_computed_too() -> None:
    """A name that nobody has takes as long as one that somebody has. Text that is not a hash is wrong, and
    any text can be tried."""
    passwords = Passwords()
    with compared() as seen:
        assert not await passwords.verify(None, "of nobody")
    assert seen == ["of nobody"]
    for stored, password in (("not a hash", "of nobody"), (None, ""), (None, "\x00"), (None, "x" * 10_000)):
        assert not await passwords.verify(stored, password)


async def test_a_storm_of_wrong_passwords(tmp_path: Path) -> None:
    """The bound holds exactly, one hash for each compared password, and who knows theirs gets in. `python -m
    verification.torture signins` makes greater ones, at replicas too."""
    async with replicas(f"sqlite:///{tmp_path}/petstore.db", ManualClock(), 1) as services:
        seen = await storm(services, 400, 1)
    assert seen.faults() == []
    assert (seen.statuses, seen.hashes) == ({403: COMPARED, 429: 400 - COMPARED}, COMPARED + 3)


async def test_a_crowd_is_refused_before_it_waits_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hundred wait for the two threads, some seconds; those who come after them are refused."""
    monkeypatch.setattr("petstore.console.passwords._MEMORY_KIB", 8)
    passwords = Passwords()
    answers = await asyncio.gather(*(passwords.hash("x" * 12) for _ in range(203)), return_exceptions=True)
    assert sum(isinstance(answer, Unavailable) for answer in answers) == 3
    assert sum(isinstance(answer, str) for answer in answers) == 200
