"""Entries of the journal in words, and the newest ones about one object.

templates/journal_parts.html shows them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from typing import Any

import msgspec
from msgspec.structs import replace

from petstore.console.visit import Visit, address
from petstore.core.amounts import write_amount
from petstore.core.journal import STORE, About, Entry, JournalQuery, animals_of_list, people_of
from petstore.core.list_reverts import DONE
from petstore.core.moments import read_moment
from petstore.core.people import Role
from petstore.core.pets import AMOUNTS
from petstore.core.printable import shortened

# This many entries of one change, or more, are one line, which opens to the first ones.
_FOLDED_FROM = 5
_SAME_SHOWN = 10
_NAMES = {"pet": "animal"}
_CHANNELS = {"cli": "command line", "api": "API", "console": "console", "mail": "mail"}
_MEMBERS = {
    "petId": "animal",
    "accountId": "account",
    "categoryId": "category",
    "keyId": "key",
    "hasPassword": "password",
}
# The page of a subject, below the console.
_PAGES = {
    "pet": "pets/{}",
    "order": "orders/{}",
    "account": "accounts/{}",
    "key": "keys/{}",
    "webhook": "webhooks/{}",
    "person": "people/of/{}",
}
_OF_MOMENTS = ("At", "Date", "Until")
_ENTRIES = 20
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")

# Texts for the values of some members, by the member's name in the journal.
ValueTexts = Mapping[str, Callable[[Any], str]]
_TEXTS: ValueTexts = {
    **dict.fromkeys(AMOUNTS, write_amount),
    "hasPassword": lambda has: "set" if has else "none",
    "types": ", ".join,
    "off": ", ".join,
}


def folded(entries: Iterable[Entry]) -> list[list[Entry]]:
    """Many neighbours by one actor, of one time and type, as of an import, are together."""
    found: list[list[Entry]] = []
    for _, same in groupby(entries, lambda entry: (entry.actor, entry.at_ms, entry.type)):
        group = list(same)
        found += [group] if len(group) >= _FOLDED_FROM else [[entry] for entry in group]
    return found


class Change(msgspec.Struct, frozen=True):
    """One member: its values before and after, or the one of a member that is new, removed or the same.
    `is_moment`: the values are Unix times."""

    member: str
    values: list[str | int | None]
    is_moment: bool


class Line(msgspec.Struct, frozen=True):
    """One entry. `who` acted over `channel`. `page` shows `about` to people of at least the role `shown_to`;
    empty without a page. `same` are the first lines of the entries of its change, where they are one line;
    `count` is how many there are at least, and `page` has all."""

    entry: Entry
    who: str
    channel: str
    what: str
    about: str
    page: str
    shown_to: Role
    changes: list[Change]
    same: list[Line] = []
    count: int = 1


class History(msgspec.Struct, frozen=True):
    """The entries about one object, newest first. `older` is the journal's page with earlier ones."""

    lines: list[Line]
    older: str = ""
    is_removed: bool = False

    @property
    def newest_id(self) -> int:
        """The id of the newest entry; 0 without entries."""
        return self.lines[0].entry.id if self.lines else 0


async def history_of(
    visit: Visit, subject: str, number: int, texts: ValueTexts | None = None, *, since_id: int = 0
) -> History:
    """The newest entries about an object, after the entry `since_id`."""
    page = await visit.store.journal.page(JournalQuery(_ENTRIES, About(subject, str(number))))
    entries = [entry for entry in page.entries if entry.id > since_id]
    older = ""
    if page.next_start is not None and len(entries) == len(page.entries):
        older = address("journal", {"about": f"{subject}:{number}", "before": page.next_start})
    return History(lines(entries, texts), older, bool(entries) and entries[0].action == "removed")


def lines(
    entries: Iterable[Entry], texts: ValueTexts | None = None, people: Mapping[int, str] | None = None
) -> list[Line]:
    """The entries in words, in their order. `people` has the names of people by id."""
    return [_line(entry, texts or {}, people or {}) for entry in entries]


async def lines_with_names(visit: Visit, entries: list[Entry]) -> list[Line]:
    """The entries in words, with people's names; many of one change are one line."""
    names = await visit.store.people.names(people_of(entries))
    found = []
    for same in folded(entries):
        newest, *others = lines(same[:_SAME_SHOWN], people=names)
        if others:
            page = f"journal?change={newest.entry.id}"
            newest = replace(newest, page=page, same=[newest, *others], count=len(same))
        found.append(newest)
    return found


def _line(entry: Entry, texts: ValueTexts, people: Mapping[int, str]) -> Line:
    channel, _, name = entry.actor.partition(":")
    subject = _NAMES.get(entry.subject, entry.subject)
    if animals := animals_of_list(entry):
        return _line_of_list(entry, animals, name, channel)
    before, after = entry.before or {}, entry.after or {}
    action = entry.action.replace("_", " ").replace("finished", str(after.get("state")))
    is_person = entry.subject == "person"
    # A person's name never changes and is never reused.
    number: object = people.get(entry.subject_id) if is_person else entry.subject_id
    return Line(
        entry=entry,
        who=name.replace("/", ", ") or entry.actor,
        channel=_CHANNELS.get(channel, "") if name else "",
        # A list that was checked is not stored yet.
        what=f"{subject} {action}".replace("store list", "stock list").capitalize(),
        about=subject if entry.subject == STORE else f"{subject} {number or entry.subject_id}",
        page=_PAGES.get(entry.subject, "").format(number) if number else "",
        shown_to=Role.OPERATOR if is_person else Role.VIEWER,
        changes=[
            _change(member, before, after, texts)
            for member in dict.fromkeys((*before, *after))  # the members of both, in this order
        ],
    )


def _line_of_list(entry: Entry, animals: int, name: str, channel: str) -> Line:
    """An import, or its revert, with the animals that it added, removed and changed."""
    assert entry.after is not None
    names = ("removed", "added", "changed", "rejected")
    counts = {what: entry.after[what] for what in names if entry.after.get(what)}
    taken = " taken back" if entry.action == DONE else ""
    return Line(
        entry=entry,
        who=name,
        channel=_CHANNELS.get(channel, ""),
        what=f"{animals:,} {'animal' if animals == 1 else 'animals'}{taken} from a list",
        about=str(entry.after["list"]),
        page=f"journal?change={entry.id}",
        shown_to=Role.VIEWER,
        changes=[Change(what, [f"{count:,}"], is_moment=False) for what, count in counts.items()],
    )


def _change(member: str, before: Mapping[str, Any], after: Mapping[str, Any], texts: ValueTexts) -> Change:
    say = texts.get(member) or _TEXTS.get(member, _text)
    is_moment = member.endswith(_OF_MOMENTS)
    values = [side[member] for side in (before, after) if member in side]
    if values[1:] == values[:1]:
        del values[1:]
    shown = [None if each is None else read_moment(each) if is_moment else say(each) for each in values]
    return Change(_MEMBERS.get(member) or _HUMP.sub(" ", member).lower(), shown, is_moment)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return shortened(value) if isinstance(value, str) else msgspec.json.encode(value).decode()
