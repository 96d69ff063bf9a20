"""`accounts contacts`, and contacts of new accounts and people.

`people contacts` is in sessions.txt, refusals are in test_refusals.py, and the journal in test_journal.py.
"""

from __future__ import annotations

from petstore.core.mails import Mail
from petstore.transactions.notifications import Ended
from petstore.wiring.administration import Store
from tests.cli.conftest import Cli

NOW = "2027-01-15T08:00:30.000Z"
NO_SERVER = "No mail is sent until PETSTORE_SMTP_URL is set.\n"
CONTACTS = ("accounts", "contacts", "shop")
SERVER = {"PETSTORE_SMTP_URL": "smtp://127.0.0.1", "PETSTORE_MAIL_FROM": "petstore@example.com"}


def addresses(cli: Cli, *command: str) -> list[str]:
    return [contact["address"] for contact in cli.json(*command)]


class TestContacts:
    """An account has contacts."""

    def test_added_and_listed(self, shop: Cli) -> None:
        """Contacts are listed in the order of their addition; an address alone shows its contact. The command
        that adds one says that it gets nothing without a server for mail."""
        assert shop.json(*CONTACTS) == []
        assert shop.run(*CONTACTS).stderr == "No contacts: petstore accounts contacts shop ADDRESS --add\n"
        for address, settings, told in (
            ("eva@shop.example", {}, NO_SERVER),
            ("adam@shop.example", SERVER, ""),
        ):
            shop.settings |= settings
            assert shop.run(*CONTACTS, address, "--add").stderr == told
        assert addresses(shop, *CONTACTS) == ["eva@shop.example", "adam@shop.example"]
        heading, first, _ = shop.ok(*CONTACTS).splitlines()
        assert " ".join(heading.split()) == "ADDRESS OFF ADDED FAULT FAULT AT"
        assert first.split() == ["eva@shop.example", "-", "2027-01-15", "08:00:30Z", "-", "-"]
        assert shop.json(*CONTACTS, "adam@shop.example") == {
            "id": 2,
            "address": "adam@shop.example",
            "off": [],
            "createdAt": NOW,
            "fault": None,
            "faultAt": None,
        }

    def test_kinds_are_switched(self, shop: Cli) -> None:
        """Off from the beginning too, and on again; each time the contact is printed as it is now. One that
        was removed may be added anew."""
        first, second = "key.expiring", "plan.changed"
        its = (*CONTACTS, "eva@shop.example")
        assert shop.json(*its, "--add", "--off", second)["off"] == [second]
        assert shop.json(*its, "--off", first, "--on", second)["off"] == [first]
        switched = shop.run(*its, "--off", second)
        assert f"off       {first}, {second}\n" in switched.stdout
        assert switched.stderr == ""
        assert f"  {first}, {second}  " in shop.ok(*CONTACTS)
        assert shop.json(*its, "--on", first, "--on", second)["off"] == []
        shop.ok(*its, "--off", first)
        assert shop.json(*its, "--remove")["off"] == [first]
        assert addresses(shop, *CONTACTS) == []
        assert shop.json(*its, "--add")["off"] == []


def test_why_the_last_mail_did_not_arrive(shop: Cli) -> None:
    """The list says why and when, for people and programs."""
    shop.ok(*CONTACTS, "eva@shop.example", "--add")

    async def refuse(store: Store) -> None:
        await store.notifications.gather()
        await store.accounts.suspend("shop", "cli:tests")
        await store.notifications.gather()
        shop.clock.advance(60)
        mail = await store.notifications.next()
        assert isinstance(mail, Mail)
        await store.notifications.note(Ended(mail, "It answered 550 5.1.1 No such user"))

    shop.with_store(refuse)
    _, line = shop.ok(*CONTACTS).splitlines()
    assert line.endswith("  It answered 550 5.1.1 No such user  2027-01-15 08:01:30Z")
    assert shop.json(*CONTACTS)[0]["faultAt"] == "2027-01-15T08:01:30.000Z"


class TestNew:
    """Contacts of a new account or person."""

    def test_an_account_is_added_with_its_contacts(self, empty: Cli) -> None:
        """An account is added with its contacts in the order in which they are given."""
        result = empty.run("accounts", "add", "zoo", "--plan", "free", "--email", "b@zoo", "--email", "a@zoo")
        assert result.stderr == f"{NO_SERVER}Next: petstore keys issue zoo\n"
        assert addresses(empty, "accounts", "contacts", "zoo") == ["b@zoo", "a@zoo"]

    def test_a_person_is_added_with_contacts(self, empty: Cli) -> None:
        """Standard output still holds the link alone."""
        empty.settings |= SERVER
        result = empty.run("people", "add", "anna", "--role", "staff", "--email", "anna@zoo")
        assert result.stdout.startswith("http://127.0.0.1:8080/console/link/")
        assert result.stdout.count("\n") == 1
        assert NO_SERVER not in result.stderr
        assert addresses(empty, "people", "contacts", "anna") == ["anna@zoo"]
