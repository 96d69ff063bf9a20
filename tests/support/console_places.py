"""Where the pages of the console are: for each path of its routes, addresses that show something there."""

from __future__ import annotations

# By the path of a route below /console: its addresses, of lists also what a search or a filter shows. There
# is none for a file, which a browser keeps and does not show.
PLACES: dict[str, tuple[str, ...]] = {
    "": ("",),
    "/journal": (
        "journal", "journal?about=pet:{pet}", "journal?about=account:{account}", "journal?actor=api",
        "journal?actor=console:nobody", "journal?since=2020-01-01&until=2020-02-01",
    ),
}  # fmt: skip
# What the store of `make demo` has; benchmarks name other things.
_DEMO = {"pet": 7, "order": 1, "account": "zooland", "key": 1}


def places(path: str, **known: object) -> list[str]:
    """The addresses of a path, with what is `known` of the store in them."""
    return [f"/console/{place}".rstrip("/").format_map(_DEMO | known) for place in PLACES[path]]
