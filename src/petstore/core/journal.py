"""The journal: who changed what, when, from what to what.

Every change of an animal, order, category, account, plan or key, and every restore, is one entry in the
transaction that makes it. Actors are `api:ACCOUNT/key N` and `cli:USER`.
"""

from __future__ import annotations

from typing import Any

import msgspec


class Entry(msgspec.Struct, frozen=True):
    """A recorded change. `at_ms` is a Unix time.

    `before` and `after` have the members that changed; `before` is None for an addition, `after` for a
    removal. Neither ever has a key's text.
    """

    id: int
    at_ms: int
    actor: str
    subject: str  # pet, order, category, account, key or store
    subject_id: int
    action: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None

    @property
    def type(self) -> str:
        """Such as `pet.added`."""
        return f"{self.subject}.{self.action}"
