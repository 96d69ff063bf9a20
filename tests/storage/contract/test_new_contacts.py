"""What every store does with contacts that come with their account or person, and with lists of mails."""

from __future__ import annotations

import pytest

from petstore.core.contacts import CONTACTS_MAX, Subject
from petstore.core.errors import AccountExists, Conflict, Invalid
from petstore.core.limits.plans import FREE
from petstore.core.people import Role
from petstore.storage.store import Store
from tests.storage.contract.test_events import settled
from tests.support.cases import every_case
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR, entries, written

TEN = [f"a{number}@zoo" for number in range(CONTACTS_MAX)]


async def addresses(store: Store) -> list[str]:
    """The addresses of the account and the person 1."""
    found = [*await store.contacts.of("account", 1), *await store.contacts.of("person", 1)]
    return [contact.address for contact in found]


class TestAdd:
    """One transaction adds all."""

    async def test_an_account_and_a_person(self, store: Store) -> None:
        """Each with an entry, in the order in which they are given."""
        await store.accounts.add("zoo", FREE, ACTOR, addresses=TEN)
        await store.people.add("anna", Role.STAFF, ACTOR, addresses=["b@zoo", "a@zoo"])
        assert await addresses(store) == [*TEN, "b@zoo", "a@zoo"]
        added = [line for line in await written(store) if "contact_added" in line]
        assert added == CONTACTS_MAX * ["account.contact_added account:1"] + 2 * [
            "person.contact_added person:1"
        ]
        with pytest.raises(Conflict, match="zoo has 10 contacts"):
            await store.contacts.add("account", "zoo", "c@zoo", ACTOR)

    @every_case("wrong", [["a@zoo", "zoo"], ["a@zoo", "b@zoo", "a@zoo"], ["a@zoo", "A@Zoo"], [*TEN, "b@zoo"]])
    async def test_one_that_is_wrong_adds_nothing(self, store: Store, wrong: list[str]) -> None:
        """No account, no person and no entry; the others may be added then."""
        with pytest.raises(Invalid):
            await store.accounts.add("zoo", FREE, ACTOR, addresses=wrong)
        with pytest.raises(Invalid):
            await store.people.add("anna", Role.STAFF, ACTOR, addresses=wrong)
        assert await written(store) == []

    async def test_an_address_is_the_same_in_any_case(self, store: Store) -> None:
        """It gets no mail twice, and is found as it is typed; it is written as it was added."""
        await store.accounts.add("zoo", FREE, ACTOR, addresses=["Anna@Zoo"])
        with pytest.raises(Conflict, match="Anna@Zoo is a contact of zoo already"):
            await store.contacts.add("account", "zoo", "anna@zoo", ACTOR)
        of: tuple[Subject, str, str, str] = ("account", "zoo", "ANNA@zoo", ACTOR)
        assert (await store.contacts.switch(*of, off=["plan.changed"])).address == "Anna@Zoo"
        await store.contacts.remove(*of)
        assert await addresses(store) == []
        assert "contact_removed" in (await written(store))[-1]

    async def test_the_journal_has_no_address_of_a_person(self, store: Store) -> None:
        """Every viewer of the console reads it, and a person's page is for operators."""
        await store.people.add("anna", Role.STAFF, ACTOR, addresses=["anna.berg@zoo.example"])
        hers: tuple[Subject, str, str, str] = ("person", "anna", "anna.berg@zoo.example", ACTOR)
        await store.contacts.switch(*hers, off=["order.created"])
        await store.contacts.remove(*hers)
        said = [each for entry in (await entries(store))[1:] for each in (entry.before, entry.after) if each]
        assert {each["contact"] for each in said} == {"a…@zoo.example"}

    async def test_an_account_with_a_taken_name_gets_no_contacts_either(self, store: Store) -> None:
        """The refusal leaves nothing half done."""
        await store.accounts.add("shop", FREE, ACTOR)
        with pytest.raises(AccountExists):
            await store.accounts.add("shop", FREE, ACTOR, addresses=TEN)
        assert await addresses(store) == []

    async def test_with_kinds_switched_off(self, store: Store) -> None:
        """They are off from the beginning: no fact comes between. Kinds of people are none of accounts."""
        await store.accounts.add("zoo", FREE, ACTOR)
        with pytest.raises(Invalid):
            await store.contacts.add("account", "zoo", "a@zoo", ACTOR, off=["order.created"])
        off = ["plan.changed", "key.banned"]
        added = await store.contacts.add("account", "zoo", "a@zoo", ACTOR, off=off)
        assert added.off == ("key.banned", "plan.changed")
        assert await store.contacts.of("account", 1) == [added]


async def test_mails_that_wait(store: Store, clock: ManualClock) -> None:
    """Mails that wait are listed, those due first, with their number, and as they are when taken."""
    await store.accounts.add("zoo", FREE, ACTOR, addresses=TEN[:3])
    await store.notifications.gather()
    await store.accounts.suspend("zoo", ACTOR)
    await settled(store)
    await store.notifications.gather()
    found, count = await store.notifications.mails()
    assert ([mail.address for mail in found], count) == (TEN[:3], 3)
    assert {(mail.owner_name, mail.kind, mail.count, mail.tries) for mail in found} == {
        ("zoo", "account.suspended", 1, 0)
    }
    clock.advance(60)
    taken = await store.notifications.next()
    assert taken in (await store.notifications.mails())[0]
