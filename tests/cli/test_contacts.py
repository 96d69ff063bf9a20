"""`accounts contacts`, `people contacts`, and contacts of new accounts and people.

What they refuse is in test_refusals.py, what they write into the journal in test_journal.py.
"""

from __future__ import annotations

import pytest

from petstore.core.mails import Mail
from petstore.transactions.notifications import Ended
from petstore.wiring.administration import Store
from tests.cli.conftest import Cli

NOW = "2027-01-15T08:00:30.000Z"
NO_SERVER = "No mail is sent until PETSTORE_SMTP_URL is set.\n"
SERVER = {"PETSTORE_SMTP_URL": "smtp://127.0.0.1", "PETSTORE_MAIL_FROM": "petstore@example.com"}


@pytest.fixture(params=["accounts contacts shop", "people contacts anna"])
def contacts(request: pytest.FixtureRequest, shop: Cli) -> list[str]:
    """The command for an account, and for a person."""
    shop.ok("people", "add", "anna", "--role", "staff")
    return str(request.param).split()


def kinds(contacts: list[str]) -> tuple[str, str]:
    """Two of the command, as they are listed."""
    return (
        ("key.expiring", "plan.changed") if contacts[0] == "accounts" else ("order.created", "list.finished")
    )


def addresses(cli: Cli, *command: str) -> list[str]:
    return [contact["address"] for contact in cli.json(*command)]


class TestContacts:
    """The same for accounts and people."""

    def test_added_and_listed(self, shop: Cli, contacts: list[str]) -> None:
        """In the order of their addition; one that is there is shown by its address alone."""
        assert shop.json(*contacts) == []
        group, _, name = contacts
        assert shop.run(*contacts).stderr == f"No contacts: petstore {group} contacts {name} ADDRESS --add\n"
        for address in ("eva@shop.example", "adam@shop.example"):
            shop.ok(*contacts, address, "--add")
        assert addresses(shop, *contacts) == ["eva@shop.example", "adam@shop.example"]
        heading, first, _ = shop.ok(*contacts).splitlines()
        assert " ".join(heading.split()) == "ADDRESS OFF ADDED FAULT FAULT AT"
        assert first.split() == ["eva@shop.example", "-", "2027-01-15", "08:00:30Z", "-", "-"]
        assert shop.json(*contacts, "adam@shop.example") == {
            "id": 2,
            "address": "adam@shop.example",
            "off": [],
            "createdAt": NOW,
            "fault": None,
            "faultAt": None,
        }

    def test_kinds_are_switched(self, shop: Cli, contacts: list[str]) -> None:
        """Off from the beginning too, and on again; each time the contact is printed as it is now."""
        first, second = kinds(contacts)
        its = (*contacts, "eva@shop.example")
        assert shop.json(*its, "--add", "--off", second)["off"] == [second]
        assert shop.json(*its, "--off", first, "--on", second)["off"] == [first]
        assert f"off       {first}, {second}\n" in shop.ok(*its, "--off", second)
        assert f"  {first}, {second}  " in shop.ok(*contacts)
        assert shop.json(*its, "--on", first, "--on", second)["off"] == []

    def test_removed(self, shop: Cli, contacts: list[str]) -> None:
        """It is printed as it was, and may be added anew."""
        its = (*contacts, "eva@shop.example")
        shop.ok(*its, "--add", "--off", kinds(contacts)[0])
        assert shop.json(*its, "--remove")["off"] == [kinds(contacts)[0]]
        assert addresses(shop, *contacts) == []
        assert shop.json(*its, "--add")["off"] == []

    def test_without_a_server_for_mail(self, shop: Cli, contacts: list[str]) -> None:
        """The command that adds a contact says that it gets nothing; others do not."""
        assert shop.run(*contacts, "eva@shop.example", "--add").stderr == NO_SERVER
        assert shop.run(*contacts, "eva@shop.example", "--off", kinds(contacts)[0]).stderr == ""
        shop.settings |= SERVER
        assert shop.run(*contacts, "adam@shop.example", "--add").stderr == ""


def test_why_the_last_mail_did_not_arrive(shop: Cli) -> None:
    """With its time, in the list and for programs."""
    shop.ok("accounts", "contacts", "shop", "eva@shop.example", "--add")

    async def refuse(store: Store) -> None:
        await store.notifications.gather()
        await store.accounts.suspend("shop", "cli:tests")
        await store.notifications.gather()
        shop.clock.advance(60)
        mail = await store.notifications.next()
        assert isinstance(mail, Mail)
        await store.notifications.note(Ended(mail, "It answered 550 5.1.1 No such user"))

    shop.with_store(refuse)
    _, line = shop.ok("accounts", "contacts", "shop").splitlines()
    assert line.endswith("  It answered 550 5.1.1 No such user  2027-01-15 08:01:30Z")
    assert shop.json("accounts", "contacts", "shop")[0]["faultAt"] == "2027-01-15T08:01:30.000Z"


class TestNew:
    """Contacts of a new account or person."""

    def test_an_account(self, empty: Cli) -> None:
        """In the order in which they are given."""
        result = empty.run("accounts", "add", "zoo", "--plan", "free", "--email", "b@zoo", "--email", "a@zoo")
        assert result.stderr == f"{NO_SERVER}Next: petstore keys issue zoo\n"
        assert addresses(empty, "accounts", "contacts", "zoo") == ["b@zoo", "a@zoo"]

    def test_a_person(self, empty: Cli) -> None:
        """Standard output still holds the link alone."""
        empty.settings |= SERVER
        result = empty.run("people", "add", "anna", "--role", "staff", "--email", "anna@zoo")
        assert result.stdout.startswith("http://127.0.0.1:8080/console/link/")
        assert result.stdout.count("\n") == 1
        assert NO_SERVER not in result.stderr
        assert addresses(empty, "people", "contacts", "anna") == ["anna@zoo"]

    def test_a_taken_name_gets_none(self, shop: Cli) -> None:
        """They go with their account or person, or nobody does."""
        shop.refused(1, "accounts", "add", "shop", "--plan", "free", "--email", "eva@shop.example")
        assert addresses(shop, "accounts", "contacts", "shop") == []
