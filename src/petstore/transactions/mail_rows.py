"""Mails that are not sent yet, as records: of those that are due, and of a list for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from petstore.core.mails import Mail
from petstore.core.values import IDS_MAX
from petstore.transactions.script import Script, statement

# As the fields of Mail, and what may end it.
MAILS = (
    "SELECT m.id, d.identity, m.contact_id, c.address, c.token, coalesce(a.name, p.name), m.kind, m.said,"
    " m.count, m.created_at_ms, m.due_ms, m.tries, m.begun, p.disabled_at_ms FROM mails m"
    " JOIN contacts c ON c.id = m.contact_id LEFT JOIN accounts a ON a.id = c.account_id"
    " LEFT JOIN people p ON p.id = c.person_id, data_set d"
)
_FIRST = statement(f"{MAILS} ORDER BY m.due_ms, m.id LIMIT {IDS_MAX}")
_COUNT = statement("SELECT count(*) FROM mails")
read_said = msgspec.json.Decoder(tuple[str, ...]).decode


def read_mail(row: Sequence[Any]) -> Mail:
    """The mail in a row of MAILS."""
    values = dict(zip(Mail.__struct_fields__, row, strict=False))
    return Mail(
        **values | {"key": f"{values['key']}.{values['id']}", "sentences": read_said(values["sentences"])}
    )


def first_mails() -> Script[tuple[list[Mail], int]]:
    """The first that are due of those not sent yet, at most IDS_MAX, and how many there are."""
    found = [read_mail(row) for row in (yield _FIRST, ())]
    ((count,),) = yield _COUNT, ()
    return found, count
