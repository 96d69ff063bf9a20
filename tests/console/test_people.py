"""People and their own accounts: what an operator does to others, and each person to themselves."""

from __future__ import annotations

import re

import pytest

from petstore.core.people import Role
from tests.console.conftest import OTHER, PASSWORD, assert_refused, follow, invited, signs_in, with_password
from tests.support.console import Shown, Visitor
from tests.support.journal import entries
from tests.support.service import Shop

_LINK = re.compile(r"http://127\.0\.0\.1:8080/console/(link/[\w-]{43})")


def link_of(shown: Shown) -> str:
    (found,) = _LINK.findall(shown.body.decode())
    return str(found)


class TestAdding:
    async def test_a_person_comes_in_by_the_link_that_is_shown_once(
        self, shop: Shop, operator: Visitor
    ) -> None:
        """They have the role that was chosen; the list shows them, never the link."""
        shown = await operator.fill("people/add", "people/add", name="ben", role="viewer")
        ben = Visitor(shop)
        link = link_of(shown)
        welcome = await ben.fill(link, "", password=PASSWORD, again=PASSWORD)
        assert "Welcome, ben" in welcome.text
        listed = await operator.get("people")
        assert {"ben", "a-operator"} <= set(listed.links)
        assert "/console/link/" not in listed.body.decode()
        (added, _) = await entries(shop.store, "person:ben")
        assert (added.actor, added.after) == ("console:a-operator", {"name": "ben", "role": "viewer"})

    async def test_the_list_has_pages(
        self, shop: Shop, operator: Visitor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Pages go by name until the last, and say how many there are."""
        monkeypatch.setattr("petstore.console.people._PAGE_LIMIT", 2)
        for name in ("ben", "cora", "dan"):
            await shop.store.people.add(name, Role.VIEWER, "cli:tests")
        shown = await operator.get("people")
        assert "2 of 4" in shown.text
        assert {"a-operator", "ben"} <= set(shown.links)
        assert "cora" not in shown.links
        last = await follow(operator, shown, "Next page")
        assert {"cora", "dan", "First page"} <= set(last.links)
        assert not {"ben", "Next page"} & set(last.links)


class TestOthers:
    async def test_disabled_and_enabled(self, shop: Shop, anna: Visitor, operator: Visitor) -> None:
        """A person is disabled after a question; their next page is the sign-in page, and stays so."""
        asked = await operator.get("people/of/anna/disable")
        assert "end at once" in asked.text
        shown = await operator.submit(asked, "disable")
        assert "can't sign in any more" in shown.text
        assert (await anna.get()).address == "/console/sign-in"
        assert (await signs_in(anna)).status == 403
        await operator.fill("people/of/anna", "enable")
        assert (await signs_in(anna)).address == "/console"

    async def test_a_reset_shows_a_new_link(self, shop: Shop, anna: Visitor, operator: Visitor) -> None:
        """The password and the sessions end at once, and the link sets another password."""
        link = link_of(await operator.fill("people/of/anna/reset", "reset"))
        assert (await anna.get()).address == "/console/sign-in"
        assert (await signs_in(anna)).status == 403
        await anna.fill(link, "", password=OTHER, again=OTHER)
        assert (await anna.get()).address == "/console"

    async def test_a_role_that_changed_meanwhile_is_told(
        self, shop: Shop, anna: Visitor, operator: Visitor
    ) -> None:
        """The second operator sees what the first one chose, and chooses once more. A role acts on the next
        page of its person, whose session goes on."""
        form = await operator.get("people/of/anna")
        await shop.store.people.set_role("anna", Role.VIEWER, "cli:tests")
        shown = await operator.submit(form, "role", role="operator")
        assert_refused(shown, 409, "anna has the role viewer now.")
        assert (await anna.get("people")).status == 403
        shown = await operator.submit(shown, "role", role="operator")
        assert "anna has the role operator." in shown.text
        assert (await anna.get("people")).status == 200

    async def test_a_reset_that_is_sent_again_resets_nothing(
        self, shop: Shop, anna: Visitor, operator: Visitor
    ) -> None:
        """A reload of the page with the link: the password that the link has set meanwhile stays."""
        asked = await operator.get("people/of/anna/reset")
        link, anna = link_of(await operator.submit(asked, "reset")), Visitor(shop)
        await anna.fill(link, "", password=OTHER, again=OTHER)
        shown = await operator.submit(asked, "reset")
        assert_refused(shown, 409, "was changed after this was asked")
        assert "/console/link/" not in shown.body.decode()
        assert (await anna.get()).address == "/console"

    async def test_the_last_operator_stays(self, shop: Shop, operator: Visitor) -> None:
        """409 for both ways, and the page says what to do first."""
        me = "people/of/a-operator"
        for shown in (
            await operator.fill(f"{me}/disable", "disable"),
            await operator.fill(me, "role", role="staff"),
        ):
            assert_refused(shown, 409, "only operator")
        assert (await operator.get("people")).status == 200

    async def test_a_person_is_asked_about_themselves(self, anna: Visitor, operator: Visitor) -> None:
        """A question about oneself is in the second person; one about others has their name."""
        shown = await operator.get("people/of/a-operator/disable")
        assert "All your sessions and links end at once, this one too" in shown.text
        shown = await operator.get("people/of/a-operator/reset")
        assert "All your sessions end at once, this one too" in shown.text
        assert "anna can't sign in" in (await operator.get("people/of/anna/disable")).text

    async def test_a_disabled_person_gets_no_link(self, shop: Shop, operator: Visitor) -> None:
        """409: enable them first. Nobody of a name: 404."""
        await invited(shop)
        await shop.store.people.disable("anna", "cli:tests")
        shown = await operator.fill("people/of/anna/reset", "reset")
        assert_refused(shown, 409, "enable them first")
        enabled = await operator.fill("people/of/anna", "enable")
        assert "anna is enabled: Reset the password" in enabled.text
        assert (await operator.get("people/of/nobody")).status == 404

    async def test_signed_out_by_an_operator(self, shop: Shop, anna: Visitor, operator: Visitor) -> None:
        """Everywhere, with an entry in the journal; the password stays."""
        await operator.fill("people/of/anna", "sign-out-everywhere")
        assert (await anna.get()).address == "/console/sign-in"
        assert (await entries(shop.store, "person:anna"))[-1].type == "person.signed_out"
        assert (await signs_in(anna)).address == "/console"


class TestMyself:
    async def test_the_password_is_changed_with_the_current_one(self, shop: Shop, anna: Visitor) -> None:
        """Other sessions end, this one goes on under a new token, and the new password signs in."""
        second = Visitor(shop)
        await signs_in(second)
        before = anna.cookies["petstore-session"]
        shown = await anna.fill("me", "me/password", present=PASSWORD, password=OTHER, again=OTHER)
        assert shown.status == 200, shown.text
        assert "password is changed" in shown.text
        assert anna.cookies["petstore-session"] != before
        assert (await second.get()).address == "/console/sign-in"
        assert (await signs_in(second, password=PASSWORD)).status == 403
        assert (await signs_in(second, password=OTHER)).address == "/console"

    async def test_an_open_browser_is_no_place_to_guess(self, shop: Shop, anna: Visitor) -> None:
        """The current password has the tries of signing in: the sixth wrong one is refused unread."""
        statuses = []
        for _ in range(6):
            page = await anna.get("me")
            shown = await anna.submit(page, "me/password", present="wrong", password=OTHER, again=OTHER)
            statuses.append(shown.status)
        assert statuses == [403] * 5 + [429]
        assert shown.headers["retry-after"] == "900"

    async def test_sessions_are_listed_and_ended(self, shop: Shop, anna: Visitor) -> None:
        """The list has address and times; one ends, or all; nobody ends another person's."""
        phone = Visitor(shop, address="198.51.100.9")
        await signs_in(phone)
        shown = await anna.get("me")
        assert "198.51.100.9" in shown.text
        assert "this one" in shown.text
        (end,) = [form.action for form in shown.forms if form.action.endswith("/end")]
        ben = await with_password(shop, "ben")
        fields = {"csrf": (await ben.get("me")).form("me/password").fields["csrf"]}
        await ben.post("me/" + end.partition("me/")[2], fields)
        assert (await phone.get()).address == "/console"
        await anna.submit(shown, end)
        assert (await phone.get()).address == "/console/sign-in"
        await signs_in(phone)
        await anna.fill("me", "sign-out-everywhere")
        for visitor in (anna, phone):
            assert (await visitor.get()).address == "/console/sign-in"
        assert (await ben.get()).address == "/console"
