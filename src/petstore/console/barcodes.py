"""Draws a number as a Code 39 barcode (ISO/IEC 16388), which scanners read unconfigured."""

from __future__ import annotations

from itertools import chain

from markupsafe import Markup

# The nine bars and spaces of a character, a bar first; w is wide, n narrow.
_CHARACTERS = {
    "0": "nnnwwnwnn", "1": "wnnwnnnnw", "2": "nnwwnnnnw", "3": "wnwwnnnnn", "4": "nnnwwnnnw",
    "5": "wnnwwnnnn", "6": "nnwwwnnnn", "7": "nnnwnnwnw", "8": "wnnwnnwnn", "9": "nnwwnnwnn",
    "*": "nwnnwnwnn",
}  # fmt: skip
_WIDTHS = {"n": 1, "w": 3}
_QUIET = 10  # narrow widths without a bar at both ends, the least that the standard allows
_NARROW_MM = 0.4


def barcode(number: int) -> Markup:
    """An SVG element. A number of seven digits is 6.5 cm wide. `number` is not negative."""
    path, at = [], _QUIET
    for character in f"*{number}*":
        for index, kind in enumerate(chain(_CHARACTERS[character], "n")):  # a space between characters
            width = _WIDTHS[kind]
            if index % 2 == 0:
                path.append(f"M{at} 0h{width}v1h-{width}z")
            at += width
    width = at - 1 + _QUIET
    return Markup(
        '<svg class="barcode" role="img" aria-label="Barcode {}" width="{}mm" viewBox="0 0 {} 1"'
        ' preserveAspectRatio="none" shape-rendering="crispEdges"><path d="{}"/></svg>'
    ).format(number, round(width * _NARROW_MM, 1), width, "".join(path))
