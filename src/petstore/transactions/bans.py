"""Bans in force, for both databases. Limiters keep the standings of keys; see counters.py of each."""

from __future__ import annotations

from petstore.core.limits.usage import BannedKey
from petstore.transactions.script import Script, statement

# Every key that only its ban stops, at the time $1.
BANNED = (
    "FROM key_standings s JOIN api_keys k ON k.id = s.key_id JOIN accounts a ON a.id = k.account_id"
    # The first two as the index by the end of bans has them.
    " WHERE s.banned_until_ms > 0 AND s.banned_until_ms > $1 AND s.pardoned_ms >= k.pardoned_at_ms"
    " AND k.revoked_at_ms IS NULL AND coalesce(k.expires_at_ms, $1 + 1) > $1"
)
_IN_FORCE = statement(
    f"SELECT a.id, a.name, k.id, k.display, k.label, s.level, s.banned_until_ms {BANNED}"
    " AND (s.banned_until_ms, s.key_id) > ($2, $3) ORDER BY s.banned_until_ms, s.key_id LIMIT $4"
)


def bans_in_force(now_ms: int, after: tuple[int, int], limit: int) -> Script[list[BannedKey]]:
    """See Usage.bans."""
    return [BannedKey(*row) for row in (yield _IN_FORCE, (now_ms, *after, limit))]
