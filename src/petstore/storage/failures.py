"""Failures of a store: the cause for operators, and for clients the outcome of their write."""

from __future__ import annotations

from petstore.core.errors import StoreUnavailable

NOTHING_STORED = "; nothing was stored"
OUTCOME_UNKNOWN = (
    "; whether this write was kept is unknown."
    " Look before repeating it, or retry with the same Idempotency-Key"
)


def failure(
    cause: str, outcome: str = "", kind: type[StoreUnavailable] = StoreUnavailable
) -> StoreUnavailable:
    """The error. `outcome` continues the sentence with the fate of the write; it is empty for a read."""
    advice = "" if outcome == OUTCOME_UNKNOWN else " Try again shortly."
    return kind(
        f"The store failed: {cause}{outcome}.",
        public=f"The service can't use its store at the moment{outcome}.{advice}",
    )
