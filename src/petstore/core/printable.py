"""Text of strangers that is safe to show."""

from __future__ import annotations


def printable(text: str) -> str:
    """Text with its unprintable characters escaped, so that it can't control a terminal."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )
