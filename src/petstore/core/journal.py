"""The journal: who changed what, when, from what to what.

Every change of an animal, order, category, account, plan, key, webhook or person, and every restore, is one
entry in the transaction that makes it. Bans, used-up days and keys that expire are entries too. Actors are
`api:ACCOUNT/key N`, `cli:USER`, `console:PERSON` and `mail:contact N`, or SERVICE.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from petstore.core.errors import Invalid
from petstore.core.values import INT64_MAX, INT64_MIN

# The store has no number; its entries have 0.
STORE = "store"
# Channels: each is the text before an actor's name.
CHANNELS = ("api", "cli", "console", "mail")
# The actor of what the service finds by itself.
SERVICE = "service"
_FORMS = "store, pet:7, order:5, category:1, key:3, webhook:4, account:shop, account:2 or person:anna"
_NUMBERED = re.compile(
    r"(pet|order|key|webhook):([1-9][0-9]{0,18})|(category):(0|-?[1-9][0-9]{0,18})", re.ASCII
)
# As people write them: `animal 7`, `Order #5`.
_WRITTEN = re.compile(r"([A-Za-z]+)[ :]\s*#?(\S+)", re.ASCII)
_SYNONYMS = {"animal": "pet", "customer": "account"}
_NAMED = re.compile(r"(account|person):([A-Za-z0-9._-]{1,64})", re.ASCII)


class Entry(msgspec.Struct, frozen=True):
    """A recorded change. `at_ms` is a Unix time.

    `before` and `after` have the members that changed; `before` is None for an addition, `after` for a
    removal. Neither ever has a key's text.
    """

    id: int
    at_ms: int
    actor: str
    subject: str  # pet, order, category, account, key, webhook, person or store
    subject_id: int
    action: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None

    @property
    def type(self) -> str:
        """The entry's type, such as `pet.added`."""
        return f"{self.subject}.{self.action}"

    @property
    def about(self) -> str:
        """The subject with its identifier, such as `pet:7`; `store` for the store."""
        return self.subject if self.subject == STORE else f"{self.subject}:{self.subject_id}"


def animals_of_list(entry: Entry) -> int:
    """How many animals the import, or the revert, that ends with this entry has changed; their entries
    are just before it. 0 for any other entry."""
    if entry.type == "store.list_taken_back" and entry.after is not None:
        return int(entry.after["removed"]) + int(entry.after["changed"])
    if entry.type != "store.list_finished" or entry.after is None or entry.after.get("state") != "stored":
        return 0
    return int(entry.after["added"]) + int(entry.after["changed"])


def people_of(entries: Iterable[Entry]) -> set[int]:
    """The identifiers of the people that entries are about."""
    return {entry.subject_id for entry in entries if entry.subject == "person"}


class About(msgspec.Struct, frozen=True):
    """What entries are about. `reference` is a number in digits, of an account or person also their name."""

    subject: str
    reference: str


def read_about(text: str) -> About:
    """Raises Invalid for what is not one of `_FORMS`. Whether the object exists is not asked: it may be
    removed."""
    if text == STORE:
        return About(STORE, "0")
    if written := _WRITTEN.fullmatch(text):
        subject = written[1].lower()
        text = f"{_SYNONYMS.get(subject, subject)}:{written[2]}"
    if named := _NAMED.fullmatch(text):
        return About(named[1], named[2])
    if numbered := _NUMBERED.fullmatch(text):
        subject, number = numbered[1] or numbered[3], numbered[2] or numbered[4]
        if INT64_MIN <= int(number) <= INT64_MAX:
            return About(subject, number)
    raise Invalid("about", f"{text!r} names nothing that the journal is about: write {_FORMS}.")


class JournalQuery(msgspec.Struct, frozen=True):
    """The entries to list, newest first: at most `limit`, those before the entry `before_id`.

    An account's entries are also those of its keys. `actor` is a whole actor or its beginning up to a colon
    or a slash: `cli:anna`, `cli`, `api:shop`, `api:shop/key 3`; `anna` is one over any channel.
    `since_ms` and `until_ms` are Unix times, the second one excluded; an entry of a clock that was wrong by
    more than an hour may not be found by them. All combine. Where no index serves a filter, at most
    `scan_max` entries are read.
    """

    limit: int
    about: About | None = None
    actor: str | None = None
    since_ms: int | None = None
    before_id: int | None = None
    until_ms: int | None = None
    scan_max: int = 5_000

    @property
    def is_searched(self) -> bool:
        """Whether there is a filter without an index."""
        return self.actor is not None or self.since_ms is not None or self.until_ms is not None


class ScanEnd(msgspec.Struct, frozen=True):
    """The oldest entry that was read, with its time."""

    id: int
    at_ms: int


class JournalPage(msgspec.Struct, frozen=True):
    """`has_more`: there are matching entries before the last one.

    `scan_end`: the page ends there because it read as many entries as it may; there may be matching ones
    before it. None when the page is full, or nothing is left. `skipped_from`: the page ends with an import,
    whose first entry this is.
    """

    entries: list[Entry]
    has_more: bool
    scan_end: ScanEnd | None = None
    skipped_from: int | None = None

    @property
    def next_start(self) -> int | None:
        """The entry before which the next page begins; None at the end."""
        if self.skipped_from is not None:
            return self.skipped_from
        if self.scan_end is not None:
            return self.scan_end.id
        return self.entries[-1].id if self.has_more else None
