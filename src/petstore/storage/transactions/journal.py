"""The journal, for both databases: one entry for each change, in the change's transaction."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from petstore.storage.rows import ENTRY, select
from petstore.storage.transactions.script import Script, statement

RECORD = statement(f"INSERT INTO journal ({select(ENTRY[1:])}) VALUES ($1, $2, $3, $4, $5, $6, $7)")

# A struct stands for its members under their names in JSON.
Members = Mapping[str, object] | msgspec.Struct | None


def record(
    now_ms: int, actor: str, subject: str, subject_id: int, action: str, before: Members, after: Members
) -> Script[None]:
    """Add an entry; see core.journal.Entry."""
    yield RECORD, (now_ms, actor, subject, subject_id, action, encode(before), encode(after))


def record_changes(
    now_ms: int,
    actor: str,
    subject: str,
    subject_id: int,
    action: str,
    before: Mapping[str, object],
    after: Mapping[str, object],
) -> Script[None]:
    """Add an entry of the members that changed; none when nothing did. Both have the same members."""
    changed = [name for name, value in before.items() if after[name] != value]
    if changed:
        old, new = ({name: members[name] for name in changed} for members in (before, after))
        yield from record(now_ms, actor, subject, subject_id, action, old, new)


def encode(members: Members) -> str | None:
    """Members as the JSON of both databases; its bytes are the same in each."""
    return None if members is None else msgspec.json.encode(members).decode()
