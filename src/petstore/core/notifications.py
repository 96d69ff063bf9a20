"""Notifications: which entries of the journal contacts get mail of, and what it says of each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import msgspec

from petstore.core.accounts import Account
from petstore.core.contacts import Subject
from petstore.core.durations import DAY_MS, HOUR_MS, MINUTE_MS
from petstore.core.errors import Invalid
from petstore.core.events import TYPES
from petstore.core.journal import Entry
from petstore.core.limits.plans import and_list
from petstore.core.moments import iso_moment

# A mail collects the entries of one kind for this time.
GATHERED_MS = MINUTE_MS
# While no server takes mail, it collects them for this time.
OPEN_MS = HOUR_MS
# A mail tells of at most this many entries, and counts the others.
SAID_MAX = 20
# A mail that could not be sent for this time is given up; older entries get none.
KEPT_MS = 4 * DAY_MS
# A mail whose result is unknown is sent this often at most: it may have arrived each time.
BEGUN_MAX = 2

_DISABLED = {
    "owner": "with a key of the account",
    "operator": "by the operator",
    "failing": "because nothing arrived for five days",
    "gone": "because it answered 410",
}


class NamedEntry(msgspec.Struct, frozen=True):
    """An entry of the journal with its account, its subject's name and the name of the key that did it."""

    entry: Entry
    account: Account | None = None
    name: str = ""
    key: str = ""

    @property
    def after(self) -> Mapping[str, Any]:
        return self.entry.after or {}

    @property
    def at(self) -> str:
        """When it was."""
        return _moment(iso_moment(self.entry.at_ms))


class NotificationKind(msgspec.Struct, frozen=True):
    """A kind of notification: the type of its entries, whose contacts take it, and its words.

    `title` has fields for the account's name and the count of entries; `titles` stands in for it where there
    are several. `advice` follows what they say, with the `page` that says more, below the service's address.
    """

    name: str
    entry: str
    to: Subject
    what: str
    title: str
    say: Callable[[NamedEntry], str]
    advice: str = ""
    page: str = ""
    titles: str = ""

    def heading(self, account: str, count: int) -> str:
        """The title of a mail with `count` entries."""
        title = (self.titles if count > 1 else "") or self.title
        return title.format(account=account, count=count)

    def sentence(self, named: NamedEntry) -> str:
        """What is said of an entry. One whose members a program of another release wrote stops no mail."""
        try:
            return self.say(named)
        except Exception:
            return self.what


def _event(
    name: str, title: str, say: Callable[[NamedEntry], str], advice: str, page: str, titles: str = ""
) -> NotificationKind:
    """A kind that is an event too."""
    (kind,) = (each for each in TYPES if each.name == name)
    (entry,) = kind.entry_types
    return NotificationKind(name, entry, "account", kind.summary, title, say, advice, page, titles)


def _moment(text: str) -> str:
    """A moment of the journal as a mail has it."""
    return f"{text[:10]} {text[11:16]} UTC"


def _plan(named: NamedEntry) -> str:
    assert named.account is not None
    plan = named.account.plan
    return f"The plan was changed on {named.at}: it is now {plan.name}, {and_list(plan.phrases('requests'))}."


def _calls(named: NamedEntry) -> str:
    found = named.after
    often = "once" if found["calls"] == 1 else f"{found['calls']:,} times"
    return (
        f"The account has called {found['operation']} {often} since {found['since']}."
        f" It will be removed on {found['endsAt'][:10]}."
    )


def _order(named: NamedEntry) -> str:
    assert named.account is not None
    return (
        f"Order {named.entry.subject_id} for animal {named.after['petId']} was placed by {named.account.name}"
        f" on {named.at}."
    )


def _list(named: NamedEntry) -> str:
    found = named.after
    if found["state"] == "refused":
        return f"{found['list']} was refused on {named.at}: {found['message']}"
    done = "stored" if found["state"] == "stored" else "checked"
    counts = [f"{found[name]:,} {name}" for name in ("added", "changed", "rejected")]
    left = "" if done == "stored" else " Nothing is stored until somebody agrees."
    return f"{found['list']} was {done} on {named.at}: {and_list(counts)}. {found['message']}".rstrip() + left


KINDS = (
    _event(
        "key.expiring",
        "{account}: a key expires soon",
        lambda named: f"The key {named.name} expires on {_moment(named.after['expiresAt'])}.",
        "Ask the operator for a new key before then. Requests with an expired key are refused with 401.",
        "docs/guide#authentication",
        "{account}: keys expire soon",
    ),
    _event(
        "limit.approaching",
        "{account}: 80 % of the day's requests are used",
        lambda named: (
            f"The account has used {named.after['used']:,} of its {named.after['limit']:,} requests for the"
            f" day, which ends on {_moment(named.after['resetAt'])}."
        ),
        "Once all are used, requests are refused with 429 until then. If you need more, ask the operator for"
        " a larger plan.",
        "docs/guide#limits",
    ),
    _event(
        "limit.reached",
        "{account}: all of the day's requests are used",
        lambda named: (
            f"The account has used all its {named.after['limit']:,} requests for the day. Requests are"
            f" refused with 429 until {_moment(named.after['resetAt'])}."
        ),
        "If you need more, ask the operator for a larger plan.",
        "docs/guide#limits",
    ),
    _event(
        "key.banned",
        "{account}: a key is banned",
        lambda named: f"The key {named.name} is banned until {_moment(named.after['bannedUntil'])}.",
        "A program that uses it kept sending requests after many were refused. After a 429, wait as long as"
        " Retry-After says.",
        "docs/guide#bans",
        "{account}: keys are banned",
    ),
    NotificationKind(
        "webhook.created",
        "webhook.added",
        "account",
        "A webhook was added, which sends your events to its address.",
        "{account}: a webhook was added",
        lambda named: f"A webhook to {named.name} was added with the key {named.key} on {named.at}.",
        "If this was not you, remove it, and ask the operator to revoke the key.",
        "docs/guide#receive-webhooks",
        "{account}: webhooks were added",
    ),
    _event(
        "webhook.disabled",
        "{account}: a webhook was disabled",
        lambda named: (
            f"The webhook to {named.name} was disabled on {named.at},"
            f" {_DISABLED[named.after['disabledReason']]}."
        ),
        "It gets no events until you enable it; then it goes on where it stopped.",
        "docs/guide#receive-webhooks",
        "{account}: webhooks were disabled",
    ),
    _event(
        "account.suspended",
        "{account}: the account was suspended",
        lambda named: (
            f"The operator suspended the account on {named.at}. Requests with its keys are refused with 403."
        ),
        "Ask the operator for the reason.",
        "docs/errors#account_suspended",
    ),
    NotificationKind(
        "plan.changed",
        "account.plan_changed",
        "account",
        "Your account has another plan, or other limits.",
        "{account}: the plan has changed",
        _plan,
    ),
    NotificationKind(
        "operation.deprecated",
        "account.deprecated_used",
        "account",
        "Your account uses an operation that will be removed: monthly in the last year, weekly at the end.",
        "{account}: an operation that you use will be removed",
        _calls,
        "Use its replacement before then.",
        "docs/deprecation",
        "{account}: operations that you use will be removed",
    ),
    NotificationKind(
        "order.created",
        "order.placed",
        "person",
        "An order was placed.",
        "New order",
        _order,
        page="console/orders",
        titles="{count:,} new orders",
    ),
    NotificationKind(
        "list.finished",
        "store.list_finished",
        "person",
        "A stock list was checked, stored or refused.",
        "A stock list was processed",
        _list,
        page="console/stock",
        titles="Stock lists were processed",
    ),
)
BY_NAME = {kind.name: kind for kind in KINDS}
BY_ENTRY = {kind.entry: kind for kind in KINDS}


def kinds_for(subject: Subject) -> list[NotificationKind]:
    """The kinds that contacts of accounts, or of people, take unless they are switched off."""
    return [kind for kind in KINDS if kind.to == subject]


def in_order(names: Collection[str]) -> tuple[str, ...]:
    """Names of kinds in the order of KINDS, each once."""
    return tuple(kind.name for kind in KINDS if kind.name in names)


def check_kinds(subject: Subject, names: Iterable[str]) -> None:
    """Raise Invalid for what contacts of accounts, or of people, can't take."""
    known = [kind.name for kind in kinds_for(subject)]
    for name in names:
        if name not in known:
            raise Invalid("kind", f"{name!r} is not a kind of notification: expected {', '.join(known)}.")
