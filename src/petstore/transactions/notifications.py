"""Mail to contacts, for both databases: what is to be sent, and the outcomes.

The transaction that reads entries from the journal makes their mails and saves how far it came: each entry is
in one mail to each contact. A mail leaves the table when it was sent.
"""

from __future__ import annotations

from collections import defaultdict

import msgspec
from msgspec.structs import replace

from petstore.core.accounts import Account
from petstore.core.contacts import Contact
from petstore.core.durations import MINUTE_MS, SECOND_MS
from petstore.core.errors import EventsGone
from petstore.core.events import Bookmark, EventQuery
from petstore.core.journal import Entry
from petstore.core.mails import Mail
from petstore.core.notifications import (
    BEGUN_MAX,
    BY_ENTRY,
    GATHERED_MS,
    KEPT_MS,
    OPEN_MS,
    SAID_MAX,
    NamedEntry,
    NotificationKind,
)
from petstore.core.values import IDS_MAX
from petstore.transactions.contacts import contacts_of, read_contact
from petstore.transactions.deliverers import nearest_bookmark
from petstore.transactions.events import OWNER, EntryPage, entries_after, newest_bookmark
from petstore.transactions.mail_rows import MAILS, first_mails, read_mail, read_said
from petstore.transactions.rows import (
    ACCOUNT,
    BOOKMARK,
    CONTACT,
    bookmark_values,
    placeholders,
    read_account,
    read_bookmark_row,
    select,
)
from petstore.transactions.script import (
    NO_EFFECT,
    Repository,
    Script,
    json_text,
    padded,
    read,
    reads,
    rows_of,
    statement,
    write,
)

# Longer than a try takes: a mail whose process ended is free after it.
LEASE_MS = 10 * MINUTE_MS
_FACTS_AT_A_TIME = IDS_MAX
# A later time than any pause is of a clock that was set back since.
_FURTHEST_MS = 2 * KEPT_MS

_BOOKMARK = statement(f"SELECT {select(BOOKMARK)} FROM notified", lock=" FOR UPDATE")
_BEGIN = statement(
    f"INSERT INTO notified (id, {select(BOOKMARK)}) VALUES (1, $1, $2, $3) ON CONFLICT DO NOTHING"
)
_MOVE = statement("UPDATE notified SET data_set = $1, after_transaction = $2, after_id = $3")
_ACCOUNTS_OF = (
    f"SELECT journal.id, {select([f'a.{column}' for column in ACCOUNT])} FROM journal"
    f" JOIN accounts a ON a.id = {OWNER} WHERE journal.id IN ({{}})"
)
_PEOPLE = statement(
    f"SELECT {select([f'c.{column}' for column in CONTACT])} FROM contacts c"
    " JOIN people p ON p.id = c.person_id WHERE p.disabled_at_ms IS NULL ORDER BY c.id",
    lock=" FOR SHARE OF c",
)
_KEY = statement("SELECT label, display FROM api_keys WHERE id = $1")
_WEBHOOK = statement("SELECT url FROM webhooks WHERE id = $1")

_OPEN = statement(
    "SELECT id, said, count FROM mails WHERE contact_id = $1 AND kind = $2 AND tries = 0 AND begun = 0"
    f" AND (due_ms > $3 OR due_ms <= $3 - {GATHERED_MS} AND created_at_ms > $3 - {OPEN_MS})"
    " ORDER BY id LIMIT 1",
    lock=" FOR UPDATE",
)
_ADD = statement(
    "INSERT INTO mails (contact_id, kind, said, count, created_at_ms, due_ms) VALUES ($1, $2, $3, $4, $5, $6)"
)
_EXTEND = statement("UPDATE mails SET said = $2, count = $3 WHERE id = $1")

_IS_DUE = f"(due_ms <= $1 OR due_ms > $1 + {_FURTHEST_MS})"
_ANY = statement(f"SELECT 1 FROM mails WHERE {_IS_DUE} LIMIT 1")
_NEXT = statement(
    f"{MAILS} WHERE {_IS_DUE.replace('due_ms', 'm.due_ms')} ORDER BY m.due_ms, m.id LIMIT 1",
    lock=" FOR UPDATE OF m SKIP LOCKED",
)
_TAKE = statement("UPDATE mails SET begun = begun + 1, due_ms = $2 WHERE id = $1")
_FORGET = statement("DELETE FROM mails WHERE id = $1")
_RESCHEDULE = statement("UPDATE mails SET begun = 0, tries = $3, due_ms = $4 WHERE id = $1 AND due_ms = $2")
_NOTE_FAULT = statement("UPDATE contacts SET fault = $2, fault_at_ms = $3 WHERE id = $1")
_NOTE_ARRIVAL = statement(
    "UPDATE contacts SET fault = NULL, fault_at_ms = NULL WHERE id = $1 AND fault IS NOT NULL"
)
_WAITING = statement(
    "SELECT count(*), min(CASE WHEN tries = 0 THEN created_at_ms END) FROM mails WHERE created_at_ms <= $1"
)


class Ended(msgspec.Struct, frozen=True):
    """The outcome of a mail. `fault`: why it did not arrive; `again_ms`: the next try's time, None for never.

    `is_try`: not the server's trouble, nor a stop.
    """

    mail: Mail
    fault: str | None = None
    again_ms: int | None = None
    is_try: bool = True


class GivenUp(msgspec.Struct, frozen=True):
    """A mail that is not sent any more, and why."""

    mail: Mail
    reason: str


class Notifications(Repository):
    """The mails of a store. Several processes may gather and send at once."""

    async def gather(self, seen: Bookmark | None = None) -> Bookmark:
        """Make the mails of all entries that are there; the bookmark up to which they are made.

        `seen`: a bookmark up to which this process has found no entry since it gathered.
        """
        is_behind = True
        while is_behind:
            seen, is_behind = await self._gather(seen)
        assert seen is not None
        return seen

    @write(NO_EFFECT)
    def _gather(self, now_ms: int, seen: Bookmark | None) -> Script[tuple[Bookmark, bool]]:
        newest = yield from newest_bookmark(now_ms)
        rows = yield _BOOKMARK, ()
        if not rows:
            yield _BEGIN, bookmark_values(newest)
            return newest, False
        before = read_bookmark_row(rows[0])
        # What was seen before a restore says nothing about what was restored.
        if seen and seen.data_set == before.data_set == newest.data_set and seen.position > before.position:
            page = yield from _page(now_ms, seen)
        else:
            page = yield from _page(now_ms, before)
        entries = [entry for entry, _ in page.entries if entry.at_ms > now_ms - KEPT_MS]
        accounts = yield from _accounts_of(entries)
        named_entries = []
        for entry in entries:
            named_entries.append((yield from _name(entry, accounts.get(entry.id))))
        yield from _write(now_ms, named_entries)
        if page.after != before:
            yield _MOVE, bookmark_values(page.after)
        return page.after, page.is_behind

    async def next(self, ended: Ended | None = None) -> Mail | GivenUp | None:
        """Save the outcome of a mail, and take the next one that is due; None when none is.

        What is taken is free again after LEASE_MS, and given up after BEGUN_MAX such ends, since each may
        have arrived.
        """
        if ended is None and not await self._database.read(rows_of(_ANY, self._clock.now_ms())):
            return None
        return await self._next(ended)

    @write(NO_EFFECT)
    def _next(self, now_ms: int, ended: Ended | None) -> Script[Mail | GivenUp | None]:
        if ended is not None:
            yield from _note(now_ms, ended)
        for row in (yield _NEXT, (now_ms,)):
            mail, (begun, disabled_at_ms) = replace(read_mail(row), due_ms=now_ms + LEASE_MS), row[-2:]
            reason = "it may have arrived" if begun >= BEGUN_MAX else ""
            if disabled_at_ms is not None:
                reason = "its person is disabled"
            if now_ms - mail.created_at_ms > KEPT_MS:
                reason = "it is too old"
            if reason:
                yield _FORGET, (mail.id,)
                return GivenUp(mail, reason)
            yield _TAKE, (mail.id, mail.due_ms)
            return mail
        return None

    @write(NO_EFFECT)
    def note(self, now_ms: int, ended: Ended) -> Script[None]:
        """Save the outcome of a mail."""
        return _note(now_ms, ended)

    mails = reads(first_mails)

    @read
    def waiting(self) -> Script[tuple[int, float]]:
        """How many mails wait for no more entries and are not sent yet, and the age, in seconds, of the
        oldest that the server has not refused."""
        now_ms = self._clock.now_ms()
        ((count, first_ms),) = yield _WAITING, (now_ms - GATHERED_MS,)
        return count, 0.0 if first_ms is None else (now_ms - first_ms) / SECOND_MS


def _page(now_ms: int, after: Bookmark) -> Script[EntryPage]:
    while True:
        query = EventQuery(_FACTS_AT_A_TIME, None, frozenset(BY_ENTRY), after)
        try:
            page = yield from entries_after(query)
        except EventsGone:
            after = yield from nearest_bookmark(now_ms, after)
        else:
            assert page is not None, "the journal is unmoved since `newest_bookmark`"
            return page


def _accounts_of(entries: list[Entry]) -> Script[dict[int, Account]]:
    """The accounts of these entries, by the entries' ids."""
    if not entries:
        return {}
    ids = padded(tuple(entry.id for entry in entries))
    rows = yield statement(_ACCOUNTS_OF.format(placeholders(len(ids)))), ids
    return {row[0]: read_account(row[1:]) for row in rows}


def _name(entry: Entry, account: Account | None) -> Script[NamedEntry]:
    """What the mail of an entry is about."""
    name = key = ""
    if entry.subject == "key":
        name = yield from _key(entry.subject_id)
    elif entry.subject == "webhook":
        for (url,) in (yield _WEBHOOK, (entry.subject_id,)):
            # The path of a webhook's URL may be a secret. A stolen key may remove the webhook at once.
            name = "/".join(url.split("/", 3)[:3]) or "an address that was removed"
        if key_id := (entry.after or {}).get("keyId"):
            key = yield from _key(key_id)
    return NamedEntry(entry, account, name, key)


def _key(key_id: int) -> Script[str]:
    for label, display in (yield _KEY, (key_id,)):
        return f"{display} ({label})" if label else str(display)
    return ""


def _write(now_ms: int, named_entries: list[NamedEntry]) -> Script[None]:
    people = [read_contact(row) for row in (yield _PEOPLE, ())] if named_entries else []
    said: defaultdict[tuple[int, str], list[str]] = defaultdict(list)
    for named in named_entries:
        kind = BY_ENTRY[named.entry.type]
        for contact in (yield from _takers(now_ms, kind, named, people)):
            said[contact.id, kind.name].append(kind.sentence(named))
    for (contact_id, kind_name), sentences in sorted(said.items()):
        yield from _write_mail(now_ms, contact_id, kind_name, sentences)


def _takers(
    now_ms: int, kind: NotificationKind, named: NamedEntry, people: list[Contact]
) -> Script[list[Contact]]:
    """The contacts that take the entry's kind and were there before it, or were added by a clock ahead."""
    contacts = people
    if kind.to == "account":
        contacts = [] if named.account is None else (yield from contacts_of("account", named.account.id))
    return [
        contact
        for contact in contacts
        if kind.name not in contact.off and not named.entry.at_ms < contact.created_at_ms <= now_ms
    ]


def _write_mail(now_ms: int, contact_id: int, kind: str, sentences: list[str]) -> Script[None]:
    """Add to the mail that waits for more of its kind or for a server, if there is one, else to a new one."""
    for mail_id, said, count in (yield _OPEN, (contact_id, kind, now_ms)):
        whole = [*read_said(said), *sentences][:SAID_MAX]
        yield _EXTEND, (mail_id, json_text(whole), count + len(sentences))
        return
    text = json_text(sentences[:SAID_MAX])
    yield _ADD, (contact_id, kind, text, len(sentences), now_ms, now_ms + GATHERED_MS)


def _note(now_ms: int, ended: Ended) -> Script[None]:
    mail = ended.mail
    if ended.fault is None:
        yield _NOTE_ARRIVAL, (mail.contact_id,)
    elif ended.is_try:
        yield _NOTE_FAULT, (mail.contact_id, ended.fault, now_ms)
    if ended.again_ms is None:
        yield _FORGET, (mail.id,)
    else:
        yield _RESCHEDULE, (mail.id, mail.due_ms, mail.tries + ended.is_try, ended.again_ms)
