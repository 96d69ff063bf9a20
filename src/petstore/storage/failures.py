"""Failures of a store: the cause for operators, and for clients the outcome of their write."""

from __future__ import annotations

from petstore.core.errors import OutcomeUnknown, StoreUnavailable

NOTHING_STORED = "; nothing was stored"
OUTCOME_UNKNOWN = (
    "; whether this write was kept is unknown."
    " Look before repeating it, or retry with the same Idempotency-Key"
)


def failure(
    cause: str, outcome: str = "", kind: type[StoreUnavailable] = StoreUnavailable
) -> StoreUnavailable:
    """The error: of `kind`, unless its `outcome` is unknown.

    `outcome` continues the sentence with the fate of the write; it is empty for a read.
    """
    unknown = outcome == OUTCOME_UNKNOWN
    advice = "" if unknown else " Try again shortly."
    return (OutcomeUnknown if unknown else kind)(
        f"The store failed: {cause}{outcome}.",
        public=f"The service can't use its store at the moment{outcome}.{advice}",
    )
