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

# Facts of one kind that come within so long are in one mail.
GATHERED_MS = MINUTE_MS
# While no server takes mail, one is open for facts of so long.
OPEN_MS = HOUR_MS
# So many of them it says, and of the others how many they are.
SAID_MAX = 20
# A mail that could not be sent for so long is given up; older facts are no news.
KEPT_MS = 4 * DAY_MS
# How often a mail may be begun without an end that is known: each may have arrived.
BEGUN_MAX = 2

_DISABLED = {
    "owner": "somebody of your account said so",
    "operator": "the operator said so",
    "failing": "nothing arrived for five days",
    "gone": "it answered 410",
}


class Fact(msgspec.Struct, frozen=True):
    """An entry, with the account that it is of and the text that names its subject."""

    entry: Entry
    account: Account | None = None
    name: str = ""

    @property
    def after(self) -> Mapping[str, Any]:
        return self.entry.after or {}


class Kind(msgspec.Struct, frozen=True):
    """A kind of notification: the type of its entries, whose contacts take it, and its words.

    `title` has a place for the account's name. `advice` follows what the facts say, with the `page` that says
    more, below the service's address.
    """

    name: str
    entry: str
    to: Subject
    what: str
    title: str
    say: Callable[[Fact], str]
    advice: str = ""
    page: str = ""

    def sentence(self, fact: Fact) -> str:
        """What is said of a fact. One whose members a program of another release wrote stops no mail."""
        try:
            return self.say(fact)
        except Exception:
            return self.what


def _event(name: str, title: str, say: Callable[[Fact], str], advice: str, page: str) -> Kind:
    """A kind that is an event too."""
    (kind,) = (each for each in TYPES if each.name == name)
    (entry,) = kind.entries
    return Kind(name, entry, "account", kind.what, title, say, advice, page)


def _moment(text: str) -> str:
    """Of a moment in the journal."""
    return f"{text[:10]} {text[11:16]} UTC"


def _plan(fact: Fact) -> str:
    assert fact.account is not None
    plan = fact.account.plan
    return f"The plan is {plan.name} now: {and_list(plan.phrases('requests'))}."


def _order(fact: Fact) -> str:
    assert fact.account is not None
    return f"Order {fact.entry.subject_id} by {fact.account.name}: animal {fact.after['petId']}."


def _list(fact: Fact) -> str:
    found = fact.after
    if found["state"] == "refused":
        return f"{found['list']} was refused: {found['message']}"
    done = "is stored" if found["state"] == "stored" else "was checked, and waits for your word"
    counts = [f"{found[name]:,} {name}" for name in ("added", "changed", "rejected")]
    return f"{found['list']} {done}: {and_list(counts)}. {found['message']}".rstrip()


KINDS = (
    _event(
        "key.expiring",
        "{account}: a key expires soon",
        lambda fact: f"The key {fact.name} expires on {_moment(fact.after['expiresAt'])}.",
        "Ask the operator for another key in time: one that has expired is answered with 401.",
        "docs/guide",
    ),
    _event(
        "limit.approaching",
        "{account}: 80 % of the day's requests are used",
        lambda fact: (
            f"{fact.after['used']:,} of {fact.after['limit']:,} requests of the day are used; it ends on"
            f" {_moment(fact.after['resetAt'])}."
        ),
        "More requests than that are answered with 429. Ask the operator for a larger plan.",
        "docs/guide",
    ),
    _event(
        "limit.reached",
        "{account}: the day's requests are used",
        lambda fact: (
            f"All {fact.after['limit']:,} requests of the day are used; more are answered with 429 until"
            f" {_moment(fact.after['resetAt'])}."
        ),
        "Ask the operator for a larger plan.",
        "docs/guide",
    ),
    _event(
        "key.banned",
        "{account}: a key is banned",
        lambda fact: f"The key {fact.name} is banned until {_moment(fact.after['bannedUntil'])}.",
        "Its program went on after many refusals. After a 429 it has to wait as long as Retry-After says.",
        "docs/guide",
    ),
    Kind(
        "webhook.created",
        "webhook.added",
        "account",
        "A webhook was added, which sends your events to its address.",
        "{account}: a webhook was added",
        lambda fact: f"A webhook to {fact.name} was added by {fact.entry.actor}.",
        "If nobody of you has added it, remove it, and ask the operator to revoke that key.",
        "docs/guide",
    ),
    _event(
        "webhook.disabled",
        "{account}: a webhook is disabled",
        lambda fact: (
            f"The webhook to {fact.name} gets nothing any more: {_DISABLED[fact.after['disabledReason']]}."
        ),
        "Enable it once its address works: it goes on where it stopped.",
        "docs/guide",
    ),
    _event(
        "account.suspended",
        "{account}: the account is suspended",
        lambda _: "The operator has suspended the account; its keys are answered with 403.",
        "Ask the operator why.",
        "docs/errors",
    ),
    Kind(
        "plan.changed",
        "account.plan_changed",
        "account",
        "Your account has another plan, or other limits.",
        "{account}: the plan has changed",
        _plan,
    ),
    Kind(
        "operation.deprecated",
        "account.deprecated_used",
        "account",
        "Your account calls an operation that ends: monthly in its last year, weekly in its last month.",
        "{account}: you call an operation that ends",
        lambda fact: (
            f"{fact.after['operation']} was called {fact.after['calls']:,} times since {fact.after['since']}."
            f" It ends on {fact.after['endsAt'][:10]}."
        ),
        "Call its successor before that day.",
        "docs/deprecation",
    ),
    Kind(
        "order.created",
        "order.placed",
        "person",
        "An order was placed.",
        "New orders",
        _order,
        page="console/orders",
    ),
    Kind(
        "list.finished",
        "store.list_finished",
        "person",
        "A stock list was checked, stored or refused.",
        "Stock lists",
        _list,
        page="console/stock",
    ),
)
BY_NAME = {kind.name: kind for kind in KINDS}
BY_ENTRY = {kind.entry: kind for kind in KINDS}


def kinds_for(subject: Subject) -> list[Kind]:
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
            raise Invalid("kind", f"{name!r} is no kind of notification: expected {', '.join(known)}.")
