"""The values in the cells of a supplier's list, and what is wrong with one in words of a shop."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable

from petstore.core.categories import Category, plain_name
from petstore.core.fields import Field, Value
from petstore.core.lists.columns import quoted, word
from petstore.core.members import read_integer
from petstore.core.pets import PetStatus
from petstore.core.values import INT64_MAX, INT64_MIN

UNSURE = "\n"  # no valid text has a line feed
_SURELY_INT64 = re.compile("0|-?[1-9][0-9]{0,17}", re.ASCII)
_INTEGER = re.compile("-?(0|[1-9][0-9]*)", re.ASCII)
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)
# An integer, also as a spreadsheet writes one that it takes for a number.
_POINT_ZERO = re.compile(rf"({_SURELY_INT64.pattern})(?:\.0+)?", re.ASCII)
_THOUSANDS = re.compile("-?[0-9]{1,3}([.,'\u2019\u00a0\u202f ][0-9]{3})+", re.ASCII)
_STATUSES = {
    **{status.value: status.value for status in PetStatus},
    "in stock": "available",
    "instock": "available",
    "for sale": "available",
    "reserved": "pending",
    "on hold": "pending",
}
_CATEGORIES_SHOWN = 10


class Cells:
    """Reads cells by the named categories. `used` are the names that have stood for a category, so that a
    list is not stored after one of them means something else."""

    def __init__(self, categories: Iterable[Category]) -> None:
        self._names = [category.name for category in categories]
        self._ids: dict[str, list[int]] = defaultdict(list)
        for category in categories:
            self._ids[plain_name(category.name)].append(category.id)
        self.used: dict[str, int] = {}

    def certain(self, field: Field) -> Callable[[str], Value]:
        """Reads a cell of a field: its value where that is certain, None for an absent one, else UNSURE."""
        if field.member == "categoryId":
            read: Callable[[str], Value] = self._category
        elif field.is_choice:
            read = _choice(field)
        else:
            pattern = field.text.pattern if field.text is not None else _SURELY_INT64
            convert: Callable[[str], Value] = field.read if field.text is not None else int
            read = lambda cell: convert(cell) if pattern.fullmatch(cell) else UNSURE  # noqa: E731
            if field.is_amount:
                return lambda cell: read(bare) if (bare := cell.strip()) else None
        return read if field.is_required else lambda cell: read(cell) if cell and not cell.isspace() else None

    def _category(self, cell: str) -> Value:
        if _SURELY_INT64.fullmatch(cell):
            return int(cell)
        name = plain_name(cell)
        ids = self._ids.get(name, ())
        if len(ids) == 1:
            self.used[name] = ids[0]
            return ids[0]
        number = _POINT_ZERO.fullmatch(name) if not ids else None
        return int(number[1]) if number else UNSURE

    def member(self, field: Field, cell: str) -> object:
        """The value of a cell as JSON would have it, for the schema, which judges it."""
        value = self.certain(field)(cell)
        if value is not UNSURE and value is not None:
            return field.write(value)
        return _number(cell.strip()) if field.text is None and field.kind is int else cell

    def words(self, field: Field, cell: str) -> str:
        """What is wrong with an UNSURE cell, in a sentence; empty where the schema's text is all there is."""
        text = cell.strip()
        if not text:
            return f"The {word(field.member)} is missing."
        if field.member == "categoryId":
            return self._category_words(text)
        if field.is_choice and text not in {each.value for each in field.kind}:
            return f"{quoted(text)} is not a {word(field.member)}: write {', '.join(field.kind)}."
        return ""

    def _category_words(self, text: str) -> str:
        ids = self._ids.get(plain_name(text), ())
        if len(ids) > 1:
            numbers = " or ".join(map(str, sorted(ids)))
            return f"Several categories are called {quoted(text)}: write the number, {numbers}."
        if _THOUSANDS.fullmatch(text):
            return f"{quoted(text)}: write the number of a category with nothing between its digits."
        if _INTEGER.fullmatch(text) and INT64_MIN <= read_integer(text) <= INT64_MAX:
            return ""
        if _NUMBER.fullmatch(text):
            return f"{quoted(text)} can't be the number of a category."
        named = sorted(set(self._names), key=str.casefold)
        more = f" and {len(named) - _CATEGORIES_SHOWN} more" if len(named) > _CATEGORIES_SHOWN else ""
        known = f"Categories: {', '.join(named[:_CATEGORIES_SHOWN])}{more}."
        if not named:
            known = "No category has a name yet, so write its number."
        return f"{quoted(text)} is not a category of this store. {known}"


def _choice(field: Field) -> Callable[[str], Value]:
    values = {choice.value: choice.value for choice in field.kind}
    if field.kind is PetStatus:
        values = _STATUSES
    return lambda cell: values.get(cell) or values.get(plain_name(cell), UNSURE)


def _number(cell: str) -> object:
    """The value of a cell as JSON would have it: an integer, another number, or else a text."""
    if _INTEGER.fullmatch(cell):
        return read_integer(cell)
    return 0.5 if _NUMBER.fullmatch(cell) else cell
