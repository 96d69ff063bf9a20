"""The columns of a supplier's list as the members of an animal, by their headings.

A heading is compared without capitals, accents, spaces and signs. Where two could be meant, none is taken,
and staff choose: what they have chosen once for these headings is remembered.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence

from petstore.core.errors import OperatorError
from petstore.core.pets import FIELDS, MEMBERS
from petstore.core.printable import printable, shortened
from petstore.core.search import FOLDED_MAX_CHARACTERS
from petstore.core.uploads import Reading

FAULTS = "faults"  # the column that the file of rejects adds, and that the next import skips
_NO_LETTERS = re.compile(r"[\W_]+")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_SHOWN_MAX = 40
_COLUMNS_SHOWN = 10
COLUMNS_CHOSEN_MAX = 60  # columns of a list at most, for staff to choose their meanings
_NAME_CHARACTERS_MAX = 60
# In the order in which they are looked for: an earlier one is taken, though a later one is there too.
_NAMES: dict[str, tuple[tuple[str, ...], ...]] = {
    "name": (
        ("pet", "pet name", "animal", "animal name"),
        ("article", "article name", "item", "item name", "product", "product name", "designation", "title"),
    ),
    "categoryId": (("category", "category name"), ("species", "group", "type", "kind", "product group")),
    "status": (("state", "availability", "stock status"),),
}
KEY = "key"  # what staff call the column of the source keys
MEANINGS = (*MEMBERS, KEY)
# The meaning that was chosen for each heading of a list, by what `together` makes of the list's headings.
Remembered = Mapping[str, Mapping[str, str]]
REQUIRED = [field.member for field in FIELDS if field.is_required]
_WORDS = {"categoryId": "category"}


class ColumnsUnclear(OperatorError):
    """Staff have to choose which column is which. `reading` has the first rows of the list."""

    def __init__(self, message: str, reading: Reading) -> None:
        super().__init__(message)
        self.reading = reading


class Columns:
    """The columns of a list by its headings: `indexes` has the index of each member that is there, and
    `key_index` is the index of the source key. `left_out` are the headings without a meaning, `names` what
    they are remembered by."""

    def __init__(
        self, headings: Sequence[str], key_name: str | None, remembered: Remembered | None = None
    ) -> None:
        self.headings = list(headings)
        self.skipped = int(list(headings[:1]) == [FAULTS])
        self.key_name = key_name
        self.indexes: dict[str, int] = {}
        self.unclear: dict[str, list[str]] = {}
        self.names = distinct(headings[self.skipped : self.skipped + COLUMNS_CHOSEN_MAX + 1])
        self.chosen = (remembered or {}).get(together(self.names))
        self.key_index = self._recognise() if self.chosen is None else self._take(self.chosen)
        self.missing = [self.key_name] if self.key_name is not None and self.key_index is None else []
        self.missing += [member for member in REQUIRED if member not in self.indexes]
        self.used = [*self.indexes.values()] + ([self.key_index] if self.key_index is not None else [])
        self.left_out = [
            heading
            for index, heading in enumerate(self.headings)
            if index >= self.skipped and index not in self.used and heading.strip()
        ]

    def _take(self, chosen: Mapping[str, str]) -> int | None:
        """The columns that staff have chosen; the index of the source key."""
        indexes = {chosen.get(name, ""): index for index, name in enumerate(self.names, self.skipped)}
        self.indexes = {member: indexes[member] for member in MEMBERS if member in indexes}
        if KEY in indexes:
            self.key_name = self.key_name or KEY
        return indexes.get(KEY)

    def _recognise(self) -> int | None:
        """What the headings say; the index of the source key."""
        plain = [""] * self.skipped + [plain_heading(heading) for heading in self.headings[self.skipped :]]
        key_index = None
        if self.key_name is not None:
            key_index = self._find(self.key_name, plain, [(plain_heading(self.key_name),)])
            if key_index is not None:
                plain[key_index] = ""
        for member in MEMBERS:
            index = self._find(member, plain, [(plain_heading(member),), *_NAMES.get(member, ())])
            if index is not None:
                self.indexes[member] = index
        return key_index

    def meanings(self) -> list[str]:
        """The meaning of each column after the column of faults; empty for one without a meaning."""
        by_index = {index: member for member, index in self.indexes.items()}
        if self.key_index is not None:
            by_index[self.key_index] = KEY
        return [by_index.get(index, "") for index in range(self.skipped, len(self.headings))]

    @property
    def are_clear(self) -> bool:
        return not (self.missing or self.unclear)

    @property
    def count_known(self) -> int:
        return len(self.indexes) + (self.key_index is not None)

    def _find(self, member: str, plain: list[str], names: Sequence[tuple[str, ...]]) -> int | None:
        for alike in names:
            found = [index for index, heading in enumerate(plain) if heading and heading in alike]
            if len(found) > 1:
                self.unclear[member] = [self.headings[index] for index in found]
            if found:
                return found[0] if len(found) == 1 else None
        return None

    def fault(self) -> str:
        """Why it is not clear which column is which."""
        faults = [
            f"Which one is the {word(member)}, {' or '.join(map(quoted, headings[:_COLUMNS_SHOWN]))}?"
            for member, headings in self.unclear.items()
        ]
        faults += [
            f"No column is called {quoted(member)}."
            if member == self.key_name
            else f"No column is the {word(member)}{_such_as(member)}."
            for member in self.missing
            if member not in self.unclear
        ]
        shown = [quoted(heading) for heading in self.headings[self.skipped :] if heading.strip()]
        more = ", …" if len(shown) > _COLUMNS_SHOWN else ""
        return (
            f"The columns of this list are not clear. {' '.join(faults)} The list has"
            f" {', '.join(shown[:_COLUMNS_SHOWN]) or 'no names of columns'}{more}. Nothing was stored."
        )


def plain_heading(heading: str) -> str:
    """A heading as it is compared: `Catégorie_Nr` and `catégorieNr` are `categorie nr`."""
    heading = heading[:FOLDED_MAX_CHARACTERS]
    letters = unicodedata.normalize("NFKD", _HUMP.sub(" ", heading)).casefold()
    plain = "".join(each for each in letters if not unicodedata.combining(each))
    return _NO_LETTERS.sub(" ", plain).strip() or heading.strip()


def distinct(headings: Sequence[str]) -> list[str]:
    """A name for each heading, by which it is remembered; one without a text has its number."""
    names: list[str] = []
    for number, heading in enumerate(headings, 1):
        name = plain_heading(heading)[:_NAME_CHARACTERS_MAX] or f"column {number}"
        while name in names:
            name += "+"
        names.append(name)
    return names


def together(names: Sequence[str]) -> str:
    """The names of a list's headings as one text, whatever their order."""
    return "\n".join(sorted(names))


def word(member: str) -> str:
    """How people call a member."""
    return _WORDS.get(member, member)


def quoted(text: str) -> str:
    """A text of a list in quotation marks, bounded and safe to show: it may be a whole line."""
    return f"'{shortened(printable(text), _SHOWN_MAX)}'"


def _such_as(member: str) -> str:
    names = [name for alike in _NAMES.get(member, ()) for name in alike if " " not in name]
    return f" (call it {', '.join([member, *names][:5])})" if names else ""
