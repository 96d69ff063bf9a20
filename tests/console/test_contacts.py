"""The block "Mail" on the pages of an account and of a person, and on one's own."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from petstore.core.contacts import CONTACTS_MAX, Contact, Subject
from petstore.core.notifications import kinds_for
from petstore.core.orders import NewOrder
from petstore.core.pets import NewPet
from petstore.transactions.notifications import Ended
from tests.console.conftest import assert_refused
from tests.support.console import Shown, Visitor
from tests.support.journal import ACTOR, entries
from tests.support.service import Shop, open_shop

ANNA = "anna@example.com"
_NO_SERVER = "No mail is sent until an operator sets PETSTORE_SMTP_URL."


class At(NamedTuple):
    """A page with the block, and who uses it there."""

    page: str
    role: str
    subject: Subject
    name: str

    async def visitor(self, shop: Shop) -> Visitor:
        return await Visitor(shop).sign_in_as(self.role, "anna")

    async def contacts(self, shop: Shop) -> list[Contact]:
        number = 1  # of the account, and of the first person
        found: list[Contact] = await shop.store.contacts.of(self.subject, number)
        return found


PLACES = [
    At("accounts/1", "operator", "account", "tests"),
    At("people/of/anna", "operator", "person", "anna"),
    At("me", "viewer", "person", "anna"),
]


@pytest.fixture(params=PLACES, ids=lambda at: at.page)
def at(request: pytest.FixtureRequest) -> At:
    place: At = request.param
    return place


async def save(visitor: Visitor, shown: Shown, at: At, *off: str) -> Shown:
    """The form of the kinds, with these cleared and all others as they are."""
    fields = shown.form("/contacts/kinds").fields
    kept = {name: text for name, text in fields.items() if name not in off}
    return await visitor.post(f"{at.page}/contacts/kinds", kept)


class TestContacts:
    """Added, switched and removed, in the journal under the name of who did it."""

    async def test_an_address_is_added_and_removed(self, shop: Shop, at: At) -> None:
        """The block tells the time; a new address gets every kind."""
        anna = await at.visitor(shop)
        assert "No address gets mail." in (await anna.get(at.page)).text
        shown = await anna.fill(at.page, "/contacts", address=f" {ANNA} ")
        assert shown.address == f"/console/{at.page}"
        assert f"{ANNA} is a contact." in shown.text
        assert f"{ANNA} 2027-01-15 08:00:30 UTC none none Remove" in shown.text
        shown = await anna.submit(shown, "/contacts/remove")
        assert f"{ANNA} is no longer a contact." in shown.text
        assert await at.contacts(shop) == []
        written = (await entries(shop.store, f"{at.subject}:{at.name}"))[-2:]
        assert [(entry.actor, entry.action) for entry in written] == [
            ("console:anna", "contact_added"),
            ("console:anna", "contact_removed"),
        ]

    async def test_each_kind_is_switched(self, shop: Shop, at: At) -> None:
        """The form has those that such a contact can take, with a sentence of each; one button saves all."""
        anna, kinds = await at.visitor(shop), kinds_for(at.subject)
        names = [kind.name for kind in kinds]
        await shop.store.contacts.add(at.subject, at.name, ANNA, ACTOR)
        shown = await anna.get(at.page)
        assert set(shown.form("/contacts/kinds").fields) == {"csrf", "contact", "was", *names}
        assert all(f"{kind.what} {kind.name}" in shown.text for kind in kinds)
        shown = await save(anna, shown, at, names[0], names[-1])
        assert f"The choice for {ANNA} is saved." in shown.text
        assert f"UTC {names[0]}, {names[-1]} none" in shown.text
        assert (await at.contacts(shop))[0].off == (names[0], names[-1])
        ticked = shown.form("/contacts/kinds").fields | {names[0]: "on"}
        await anna.post(f"{at.page}/contacts/kinds", ticked)
        assert (await at.contacts(shop))[0].off == (names[-1],)

    async def test_what_a_colleague_switched_meanwhile_stays(self, shop: Shop) -> None:
        """A form that is sent as it was changes nothing, neither what is on now nor what is off."""
        at = PLACES[0]
        anna, (first, second, *_) = await at.visitor(shop), [kind.name for kind in kinds_for(at.subject)]
        contacts = shop.store.contacts
        await contacts.add(at.subject, at.name, ANNA, ACTOR)
        await contacts.switch(at.subject, at.name, ANNA, ACTOR, off=[second])
        shown = await anna.get(at.page)
        await contacts.switch(at.subject, at.name, ANNA, ACTOR, off=[first], on=[second])
        await save(anna, shown, at)
        assert (await at.contacts(shop))[0].off == (first,)

    async def test_the_last_fault_and_its_time(self, shop: Shop, staff: Visitor, viewer: Visitor) -> None:
        """The mail server refused a mail."""
        await shop.store.contacts.add("person", "a-staff", ANNA, ACTOR)
        await shop.store.notifications.gather()
        await shop.store.pets.add(NewPet("Rex", 1), ACTOR)
        await shop.store.orders.place(1, NewOrder(1), ACTOR)
        await shop.store.notifications.gather()
        shop.clock.advance(60)
        mail = await shop.store.notifications.next()
        await shop.store.notifications.note(Ended(mail, "550 No such user <here>."))
        shown = await staff.get("me")
        assert f"{ANNA} 2027-01-15 08:00:30 UTC none 2027-01-15 08:01:30 UTC 550 No such user" in shown.text
        assert ANNA not in (await viewer.get("me")).text

    async def test_a_lesser_role_sees_an_accounts_contacts_without_a_form(
        self, shop: Shop, staff: Visitor
    ) -> None:
        """They may read whom to write to, and change nothing."""
        await shop.store.contacts.add("account", "tests", ANNA, ACTOR)
        shown = await staff.get("accounts/1")
        assert f"{ANNA} 2027-01-15 08:00:30 UTC none none" in shown.text
        assert [form.action for form in shown.forms if "contacts" in form.action] == []


class TestRefused:
    """Forms with a fault are in test_refusals.py; here, what else can be in the way."""

    async def test_an_eleventh_contact_is_refused(self, shop: Shop) -> None:
        """409 beside the field, which has the address, and where the reader is at once."""
        at = PLACES[0]
        anna = await at.visitor(shop)
        for number in range(CONTACTS_MAX):
            await shop.store.contacts.add(at.subject, at.name, f"{number}@example.com", ACTOR)
        shown = await anna.fill(at.page, "/contacts", address=ANNA)
        told = f' autofocus>\n<small id="address-help" class="wrong">{at.name} has 10 contacts, which is all.'
        assert (shown.status, told in shown.body.decode()) == (409, True), shown.text
        assert shown.form("/contacts").fields["address"] == ANNA

    async def test_a_contact_that_was_removed_meanwhile(self, shop: Shop, at: At) -> None:
        """404 for both forms, on the page as it is now."""
        anna = await at.visitor(shop)
        await shop.store.contacts.add(at.subject, at.name, ANNA, ACTOR)
        asked = await anna.get(at.page)
        await shop.store.contacts.remove(at.subject, at.name, ANNA, ACTOR)
        for action in ("/contacts/remove", "/contacts/kinds"):
            shown = await anna.submit(asked, action)
            assert_refused(shown, 404, f"There is no such contact: {ANNA}.")
            assert "No address gets mail." in shown.text

    async def test_a_form_that_no_page_sends(self, shop: Shop) -> None:
        """400: nothing is switched off by what it does not have."""
        at = PLACES[0]
        anna = await at.visitor(shop)
        await shop.store.contacts.add(at.subject, at.name, ANNA, ACTOR)
        fields = (await anna.get(at.page)).form("/contacts/kinds").fields
        for given in ("was", "contact"):
            sent = {name: fields[name] for name in ("csrf", given)}
            assert (await anna.post(f"{at.page}/contacts/kinds", sent)).status == 400
        assert (await at.contacts(shop))[0].off == ()


async def test_an_account_is_added_with_or_without_an_address(shop: Shop, operator: Visitor) -> None:
    """Mail for it can be set up at once, or later."""
    for name, address in (("zoo", ANNA), ("den", "")):
        await operator.fill("accounts/new", "accounts/new", name=name, address=address)
    found = [await shop.store.contacts.of("account", number) for number in (2, 3)]
    assert [[contact.address for contact in contacts] for contacts in found] == [[ANNA], []]


async def test_without_a_mail_server_the_block_says_so(
    shop: Shop, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """It names the setting; it says nothing where there is a server."""
    assert _NO_SERVER in (await (await Visitor(shop).sign_in_as("viewer")).get("me")).text
    folder, server = tmp_path_factory.mktemp("mail"), "smtps://mail.example"
    async with open_shop(folder, smtp_url=server, mail_from="petstore@example.com") as sending:
        shown = await (await Visitor(sending).sign_in_as("viewer")).get("me")
        assert ("No address gets mail." in shown.text, _NO_SERVER in shown.text) == (True, False)
