"""The headers that announce the end of GET /pets/{petId}, and the error after it.

Specification, Versioning: deprecated, removal on 5 December 2030.
"""

from __future__ import annotations

from email.utils import formatdate

from petstore.core.durations import SECOND_MS
from petstore.core.errors import Gone

# 2026-11-21T00:00:00Z, the release of 1.0.0. RFC 9745 asks for a Unix time.
DEPRECATED_AT = 1_795_219_200


class Deprecation:
    """The headers and the 410 of getPet. `is_over`: it is removed, whatever the time is."""

    def __init__(
        self, removal_at_ms: int, reference_base: str, documentation: str, *, is_over: bool = False
    ) -> None:
        self.removal_at_ms = 0 if is_over else removal_at_ms
        self._base = reference_base
        self._documentation = documentation
        self._fixed = [
            (b"deprecation", b"@%d" % DEPRECATED_AT),
            (b"sunset", formatdate(removal_at_ms // SECOND_MS, usegmt=True).encode("ascii")),
        ]

    def successor(self, pet_id: int | None) -> str:
        """The reference that replaces GET /pets/{petId}."""
        return f"{self._base}/pets" if pet_id is None else f"{self._base}/pets?id={pet_id}"

    def headers(self, pet_id: int | None) -> list[tuple[bytes, bytes]]:
        """Deprecation (RFC 9745), Sunset (RFC 8594) and Link (RFC 8288)."""
        link = (
            f'<{self._documentation}>; rel="deprecation"; type="text/html", '
            f'<{self.successor(pet_id)}>; rel="successor-version"'
        )
        return [*self._fixed, (b"link", link.encode("ascii"))]

    def gone(self, pet_id: int | None) -> Gone:
        """The error from the removal date on."""
        return Gone(f"GET /pets/{{petId}} was removed; use GET {self.successor(pet_id)} instead.")
