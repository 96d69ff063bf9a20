"""Text of strangers that is safe to show."""

from __future__ import annotations

from petstore.core.values import NAME_MAX_CHARACTERS


def printable(text: str) -> str:
    """Text with its unprintable characters escaped, so that it can't control a terminal."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def shortened(text: str, limit: int = NAME_MAX_CHARACTERS) -> str:
    """Text of at most `limit` characters, with a sign where some are left out."""
    return text if len(text) <= limit else f"{text[:limit]}…"
