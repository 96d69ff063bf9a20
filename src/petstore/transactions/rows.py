"""The columns of every table and record, once: SELECT lists, the reading of rows and `db copy` follow them.

BanState's fields are in the order of the text in Valkey: `as_text` in limiter/valkey/recovery.py, and the
patterns of take.lua, which change with a field. Tables have them as columns, by their names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
from msgspec.structs import astuple

from petstore.core.accounts import Account
from petstore.core.contacts import Contact
from petstore.core.customers import Customer
from petstore.core.events import Bookmark, Position
from petstore.core.fields import Field
from petstore.core.journal import Entry
from petstore.core.keys import Access, ApiKey, Caller
from petstore.core.limits.bans import BanState
from petstore.core.limits.counters import LimiterState
from petstore.core.limits.plans import LIMIT_COLUMNS, WINDOWS, Plan
from petstore.core.limits.usage import DailyUsage, UsageChanges
from petstore.core.orders import OPEN, ORDER_STATUSES, Order
from petstore.core.pets import FIELDS, NewPet, Pet, PetStatus, PublicPet
from petstore.core.search import FORMAT, IndexProgress, read_kind
from petstore.core.uploads import Upload
from petstore.core.webhooks import DeliveryAttempt, DisabledReason, Repetition, Webhook


class Table(msgspec.Struct, frozen=True):
    """A table of both databases. `order` is its primary key; `has_identity`: the database assigns `id`."""

    name: str
    columns: tuple[str, ...]
    order: str = "id"
    has_identity: bool = True


def select(columns: Sequence[str]) -> str:
    """A list of columns in SQL."""
    return ", ".join(columns)


def quoted(names: Iterable[str]) -> str:
    """Names of the program's own for `IN`."""
    return ", ".join(f"'{name}'" for name in names)


ORDER_IS_OPEN = f"status IN ({quoted(OPEN)})"
_LIMITS = len(LIMIT_COLUMNS)
ACCOUNT = ("id", "name", "plan", *LIMIT_COLUMNS, "created_at_ms", "suspended_at_ms", "closed_at_ms")
ORDER = Order.__struct_fields__
CUSTOMER = ("account_id", *Customer.__struct_fields__)
CATEGORY = ("id", "name")
ENTRY = Entry.__struct_fields__
PET = Pet.__struct_fields__
NEW_PET = NewPet.__struct_fields__
PUBLIC_PET = PublicPet.__struct_fields__
PUBLIC_BUT_STATUS = tuple(name for name in PUBLIC_PET if name != "status")
CONTACT = ("id", "account_id", "person_id", *Contact.__struct_fields__[3:])
MAIL = ("id", "contact_id", "kind", "said", "count", "created_at_ms", "due_ms", "tries", "begun")
PERSON = ("id", "name", "role", "password", "created_at_ms", "disabled_at_ms", "time_zone")
WEBHOOK = Webhook.__struct_fields__
# The bookmark at which a webhook goes on; its health is in the rest of WEBHOOK_ROW and `failing_since_ms`.
BOOKMARK = ("data_set", "after_transaction", "after_id")
WEBHOOK_ROW = (*WEBHOOK, "secrets", *BOOKMARK, "failures", "paused_until_ms", "removed_at_ms")
# How far an index of searches is.
PROGRESS = ("data_set", "place_transaction", "place_id", "walked", "after_id", "format")
REPETITION = Repetition.__struct_fields__
ATTEMPT = DeliveryAttempt.__struct_fields__
UPLOAD = Upload.__struct_fields__
CREATION = ("account_id", "key", "fingerprint", "resource_id", "created_at_ms", "resource")
ACCOUNT_WINDOWS = tuple(column for window in WINDOWS for column in (window.opened_column, window.used_column))
BAN_STATE = BanState.__struct_fields__
DAILY_USAGE = DailyUsage.__struct_fields__

# In the order of their references. SQLite's table of versions and PostgreSQL's notes are their own, and
# sessions, links, tries of passwords, uploads and refusals end with the database that they began in.
TABLES = (
    Table("pets", PET),
    Table("pet_sources", ("source_key", "pet_id"), "source_key", has_identity=False),
    Table("categories", CATEGORY, has_identity=False),
    Table("stock_columns", ("headings", "meanings", "at_ms"), "headings", has_identity=False),
    Table("accounts", ACCOUNT),
    Table("customers", CUSTOMER, "account_id", has_identity=False),
    Table(
        "api_keys",
        (
            "id",
            "account_id",
            "digest",
            "label",
            "display",
            "created_at_ms",
            "expires_at_ms",
            "revoked_at_ms",
            "pardoned_at_ms",
            "access",
        ),
    ),
    Table("orders", ORDER),
    Table("creations", CREATION, "account_id, key", has_identity=False),
    Table("account_windows", ("account_id", *ACCOUNT_WINDOWS), "account_id", has_identity=False),
    Table("key_standings", ("key_id", *BAN_STATE), "key_id", has_identity=False),
    Table("key_activity", ("key_id", "last_used_at_ms"), "key_id", has_identity=False),
    Table("usage_days", ("account_id", *DAILY_USAGE), "account_id, day", has_identity=False),
    Table("people", PERSON),
    Table("webhooks", WEBHOOK_ROW),
    Table(
        "webhook_repetitions",
        ("webhook_id", *REPETITION),
        "webhook_id, data_set, entry_id",
        has_identity=False,
    ),
    Table("webhook_tries", ("id", "webhook_id", *ATTEMPT)),
    Table("contacts", CONTACT),
    Table("mails", MAIL),
    Table("notified", ("id", *BOOKMARK), has_identity=False),
    Table("journal", ENTRY),
    Table("facts", ("of_ms", "kind", "subject"), "of_ms, kind, subject", has_identity=False),
)

# Reads that join tables; the columns are the record's fields, and at the end of SELECT_CALLER the digest.
SELECT_KEY = (
    "SELECT k.id, k.account_id, k.label, k.display, k.created_at_ms, k.expires_at_ms, k.revoked_at_ms,"
    " u.last_used_at_ms, k.access FROM api_keys k LEFT JOIN key_activity u ON u.key_id = k.id"
)
SELECT_CALLER = (
    f"SELECT k.id, k.account_id, {select([f'a.{column}' for column in LIMIT_COLUMNS])},"
    " k.expires_at_ms, k.revoked_at_ms, k.pardoned_at_ms,"
    " a.suspended_at_ms, a.name, a.plan, k.access, k.digest"
    " FROM api_keys k JOIN accounts a ON a.id = k.account_id"
)


def placeholders(count: int, first: int = 1) -> str:
    """A list of placeholders in SQL, from `$first` on."""
    return ", ".join(f"${number}" for number in range(first, first + count))


def new_pet_placeholders(first: int) -> str:
    """The placeholders of an animal without its identifier, with PostgreSQL's types: where SELECT has them it
    knows none."""
    return ", ".join(f"${number}::{sql_type(field)}" for number, field in enumerate(FIELDS, first))


def sql_type(field: Field) -> str:
    """The type of a column in PostgreSQL."""
    return "bigint" if field.kind is int else "text"


def batch_rows(state: LimiterState, usage: UsageChanges) -> list[list[tuple[int, ...]]]:
    """A batch of counters as rows of account_windows, key_standings, usage_days and key_activity."""
    return [
        [(account, *used.numbers()) for account, used in state.windows.items()],
        [(key, *astuple(ban)) for key, ban in state.bans.items()],
        [(account, *astuple(counts)) for (account, _), counts in usage.daily.items()],
        list(usage.last_used_ms.items()),
    ]


_CHOICES = {field.name: {each.value: each for each in field.kind} for field in FIELDS if field.is_choice}


def _function(text: str) -> Any:
    """A reader of animals, written as dataclasses write `__init__`: a general one takes three times as
    long."""
    known = {"Pet": Pet, "PublicPet": PublicPet} | {f"{name}_of": values for name, values in _CHOICES.items()}
    return eval(text, known)


def _struct(kind: str, values: Mapping[str, str]) -> str:
    """The call that makes an animal of texts of its values."""
    read = [f"{name}_of[{text}]" if name in _CHOICES else text for name, text in values.items()]
    return f"{kind}({', '.join(read)})"


def _rows(kind: str, columns: Sequence[str]) -> str:
    made = _struct(kind, dict(zip(columns, columns, strict=True)))
    return f"lambda rows: [{made} for {select(columns)} in rows]"


# Readers of one row of the columns PET and of many, of many of PUBLIC_PET, and of those without status.
read_pet: Callable[[Sequence[Any]], Pet] = _function(
    f"lambda row: {_struct('Pet', {name: f'row[{index}]' for index, name in enumerate(PET)})}"
)
read_pets: Callable[[Iterable[Iterable[Any]]], list[Pet]] = _function(_rows("Pet", PET))
read_public_pets: Callable[[Iterable[Iterable[Any]]], list[Pet]] = _function(_rows("PublicPet", PUBLIC_PET))
read_public_pets_in: Callable[[Iterable[Iterable[Any]], PetStatus], list[Pet]] = _function(
    f"lambda rows, status: [PublicPet({select(PUBLIC_PET)}) for {select(PUBLIC_BUT_STATUS)} in rows]"
)


def read_order(row: Sequence[Any]) -> Order:
    """The order in a row of the columns ORDER."""
    return Order(row[0], row[1], row[2], ORDER_STATUSES[row[3]], *row[4:])


def read_entry(row: Sequence[Any]) -> Entry:
    """The journal's entry in a row of the columns ENTRY."""
    return Entry(*[*row[:6], _read_members(row[6]), _read_members(row[7])])


def _read_members(text: str | None) -> dict[str, Any] | None:
    return None if text is None else msgspec.json.decode(text)


def read_webhook(row: Sequence[Any]) -> Webhook:
    """The webhook in a row of the columns WEBHOOK."""
    types, disabled = tuple(row[4].split(",")), row[7] and DisabledReason(row[7])
    return Webhook(*[*row[:4], types, *row[5:7], disabled, row[8]])


def bookmark_values(bookmark: Bookmark) -> tuple[str, int, int]:
    """The values of the columns BOOKMARK."""
    return bookmark.data_set, bookmark.position.transaction, bookmark.position.id


def read_bookmark_row(row: Sequence[Any]) -> Bookmark:
    """The bookmark in a row of the columns BOOKMARK."""
    return Bookmark(row[0], Position(row[1], row[2]))


def progress_values(progress: IndexProgress) -> tuple[object, ...]:
    """The values of the columns PROGRESS."""
    return *bookmark_values(progress.bookmark), progress.building or "", progress.after_id, progress.format


def read_progress(row: Sequence[Any] | None) -> IndexProgress | None:
    """The progress in a row of the columns PROGRESS; None without a row and for one of an older format."""
    if row is None or row[-1] < FORMAT:
        return None
    return IndexProgress(read_bookmark_row(row), read_kind(row[3]), *row[4:])


def read_key(row: Sequence[Any]) -> ApiKey:
    """The key in a row of SELECT_KEY."""
    return ApiKey(*[*row[:-1], Access(row[-1])])


def read_caller(row: Sequence[Any]) -> Caller:
    """The caller in a row of SELECT_CALLER."""
    limits = _same_limits(*row[2 : 2 + _LIMITS])
    return Caller(*[*row[:2], limits, *row[2 + _LIMITS : -2], Access(row[-2])])


@lru_cache(maxsize=1_024)
def _same_limits(*limits: int) -> tuple[int, ...]:
    """One object for the callers of a plan: 100,000 keys' objects would be cold in the processor's caches."""
    return limits


def read_account(row: Sequence[Any]) -> Account:
    """The account in a row of the columns ACCOUNT."""
    return Account(row[0], row[1], read_plan(row[2:]), *row[3 + _LIMITS :])


def read_plan(row: Sequence[Any]) -> Plan:
    """The plan in a row that begins with the columns `plan` and LIMIT_COLUMNS."""
    return Plan(row[0], tuple(row[1 : 1 + _LIMITS]))
