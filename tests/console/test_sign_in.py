"""The way in and out: a one-time link, a password, a session, and what is refused on the way."""

from __future__ import annotations

from petstore.core.people import Role
from tests.support.console import Shown, Visitor
from tests.support.journal import ACTOR, written
from tests.support.service import Shop

PASSWORD = "a dog, a cat and a bird"


async def invited(shop: Shop, name: str = "anna", role: Role = Role.STAFF) -> str:
    """The address of a new person's link, below the console."""
    return f"link/{(await shop.store.people.add(name, role, ACTOR)).token}"


async def with_password(shop: Shop, name: str = "anna", role: Role = Role.STAFF) -> Visitor:
    """A new person who has set a password and is signed in."""
    visitor = Visitor(shop)
    link = await invited(shop, name, role)
    shown = await visitor.submit(await visitor.get(link), "", password=PASSWORD, again=PASSWORD)
    assert shown.address == "/console"
    return visitor


async def signs_in(
    visitor: Visitor, name: str = "anna", password: str = PASSWORD, path: str = "sign-in"
) -> Shown:
    return await visitor.submit(await visitor.get(path), "sign-in", name=name, password=password)


async def test_from_the_link_to_the_end_of_the_session(shop: Shop) -> None:
    """The link asks for a password and opens a session; signed out, the password opens the next."""
    anna = await with_password(shop)
    assert set(anna.cookies) >= {"petstore-session"}
    shown = await anna.submit(await anna.get(), "sign-out")
    assert (shown.address, "signed out" in shown.text) == ("/console/sign-in", True)
    assert (await anna.get()).address == "/console/sign-in"
    shown = await signs_in(anna, path="me")
    assert (shown.address, shown.status) == ("/console/me", 200)
    assert await written(shop.store, "person:anna") == [
        "person.added person:1",
        "person.password_set person:1",
    ]
