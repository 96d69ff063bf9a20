"""Chooses an account, an animal or a category by a part of its name.

A field takes a number, a whole name, or what a list offers while somebody types. Without a script, a text
that several things match is answered by the form with a list of them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping

import msgspec
from starlette.responses import Response

from petstore.console.account_pages import find_accounts
from petstore.console.categories import names_in, with_animals
from petstore.console.pet_pages import find_pets
from petstore.console.visit import Faults, View, Visit
from petstore.core.accounts import Account, AccountQuery
from petstore.core.errors import AccountNotFound, Invalid, NotFound
from petstore.core.pets import PetQuery, PetStatus
from petstore.core.search import Words, fold, id_in

_OFFERED = 8
_TEXT_MAX = 255
# A choice of an animal as the field has it: `340 · Lady Captain`.
_CHOSEN = re.compile(r"#?([0-9]{1,19}) · .*", re.ASCII)


class Choice(msgspec.Struct, frozen=True):
    """What a field can have, as its text; `name` and what else a list shows of it."""

    text: str
    name: str
    about: str = ""
    state: str = ""

    @property
    def option(self) -> tuple[str, str]:
        """The choice as an option of a <select>."""
        return self.text, " · ".join(filter(None, (self.name, self.about, self.state)))


class Unclear(Faults):
    """Fields whose texts do not say which; `choices` are what they may mean. Others may be wrong as well."""

    def __init__(self, choices: dict[str, list[Choice]], faults: Mapping[str, str] | None = None) -> None:
        super().__init__({**(faults or {}), **dict.fromkeys(choices, "Which one? Choose it in the list.")})
        self.choices = defaultdict(list, choices)


async def accounts(visit: Visit, text: str) -> list[Choice]:
    """The open accounts that match."""
    found = await find_accounts(visit, AccountQuery(_OFFERED, text))
    return [
        Choice(use.account.name, use.account.name, use.account.plan.name, use.account.state)
        for use in found.rows
        if use.account.closed_at_ms is None
    ][:_OFFERED]


async def pets(visit: Visit, text: str) -> list[Choice]:
    """The available ones before others."""
    names = await names_in(visit)
    available = await find_pets(visit, text, PetQuery(_OFFERED, PetStatus.AVAILABLE, newest_first=True))
    others = await find_pets(visit, text, PetQuery(_OFFERED, newest_first=True))
    found = {pet.id: pet for pet in (*available.rows, *others.rows)}
    return [
        Choice(f"{pet.id} · {pet.name}", pet.name, f"{pet.id} · {names.label(pet.category_id)}", pet.status)
        for pet in found.values()
    ][:_OFFERED]


async def categories(visit: Visit, text: str) -> list[Choice]:
    """The categories that match, also unnamed ones that have animals; without a text the first by name."""
    names, words = await names_in(visit), Words(text)
    choices = [
        Choice(names.written(int(number)), label, "" if label == number else number)
        for number, label in names.numbered(await with_animals(visit))
    ]
    return [each for each in choices if not words or words.match(each.name) or text.strip() == each.about][
        :_OFFERED
    ]


_KINDS: dict[str, Callable[[Visit, str], Awaitable[list[Choice]]]] = {
    "accounts": accounts,
    "pets": pets,
    "categories": categories,
}


async def offer(visit: Visit) -> Response:
    """The list below a field, for its script."""
    kind = visit.path["kind"]
    if kind not in _KINDS:
        raise NotFound(f"There is no list of {kind} to choose from.")
    text = visit.query.get("q", "")[:_TEXT_MAX]
    wanted = bool(text.strip()) or kind == "categories"
    choices = await _KINDS[kind](visit, text) if wanted else []
    return visit.page("picks.html", "Choose", fragment="choices", choices=choices)


def read_number(text: str) -> int | None:
    """The number of an animal that was written or chosen; None for no number of an animal."""
    chosen = _CHOSEN.fullmatch(text.strip())
    return id_in(chosen[1] if chosen else text)


async def read_account(visit: Visit, text: str) -> Account:
    """The account that is meant. Names may differ in capitals alone. Raises Unclear, NotFound, and Invalid
    without a text."""
    if not text:
        raise Invalid("account", "Whose order is it? Write a part of the account's name, or its number.")
    number, find = id_in(text), visit.store.accounts.find
    try:
        return await find(text if number is None else str(number))
    except AccountNotFound:
        choices = [] if number is not None else await accounts(visit, text)
        same = [each.text for each in choices if fold(each.text) == fold(text)]
        if len(same) == 1:
            return await find(same[0])
        if choices:
            raise Unclear({"account": choices}) from None
        raise


async def read_pet(visit: Visit, text: str) -> int:
    """The identifier of the animal that is meant. Raises Unclear, and Invalid for what matches none."""
    number = read_number(text)
    choices = await pets(visit, text) if number is None else []
    same = [each for each in choices if fold(each.name) == fold(text)]
    if len(same) == 1 and len(choices) < _OFFERED:  # else others of the name may not be among them
        number = read_number(same[0].text)
    elif choices:
        raise Unclear({"pet": choices})
    if number is None:
        raise Invalid("pet", "Which animal? Write a part of its name, or its number.")
    return number


VIEWS = [View("GET", "/pick/{kind}", offer)]
