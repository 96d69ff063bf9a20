"""Text of strangers that is safe to show."""

from __future__ import annotations

from petstore.core.values import NAME_MAX_CHARACTERS


def printable(text: str) -> str:
    """Text with its unprintable characters escaped, so that it can't control a terminal."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def shortened(text: str) -> str:
    """Text as a list of changes shows it: at most as long as a name."""
    return text if len(text) <= NAME_MAX_CHARACTERS else f"{text[:NAME_MAX_CHARACTERS]}…"
