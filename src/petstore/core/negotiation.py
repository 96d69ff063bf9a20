"""The weights in Accept and Accept-Encoding (RFC 9110, section 12.4.2)."""

from __future__ import annotations

import re
from collections.abc import Iterable

_WEIGHT = re.compile(r"q\s*=\s*(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)")


def weights(values: Iterable[str]) -> dict[str, float]:
    """Weights from 0 to 1 by name, in the client's order. A missing or unreadable weight is 1."""
    found: dict[str, float] = {}
    for element in ",".join(values).lower().split(","):
        name, *parameters = (part.strip() for part in element.split(";"))
        given = next(filter(None, map(_WEIGHT.fullmatch, parameters)), None)
        if name:
            found.setdefault(name, float(given[1]) if given else 1.0)
    return found


def takes_gzip(accept_encoding: list[str]) -> bool:
    """Whether gzip is accepted, and the plain bytes are not preferred."""
    accepted = weights(accept_encoding)
    weight = accepted.get("gzip", accepted.get("*", 0.0))
    return weight > 0 and weight >= accepted.get("identity", 0.0)


def prefers_html(accept: list[str]) -> bool:
    """Whether a browser reads the answer: only browsers name text/html; programs send `*/*`."""
    accepted = weights(accept)
    html, json = accepted.get("text/html", 0.0), accepted.get("application/json", 0.0)
    if html != json:
        return html > json
    names = list(accepted)
    return html > 0 and names.index("text/html") < names.index("application/json")
