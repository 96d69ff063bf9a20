"""Pages of animals, for both databases: each statement walks one index from the page's first animal on."""

from __future__ import annotations

from collections.abc import Sequence

from petstore.core.pets import Page, PageQuery, Pet, PetStatus
from petstore.core.values import NAME_MAX_CHARACTERS
from petstore.transactions.query import page_by_id
from petstore.transactions.rows import PET, PUBLIC_BUT_STATUS, PUBLIC_PET, select
from petstore.transactions.script import Statement


def page_of(query: PageQuery, columns: Sequence[str] = PET) -> tuple[Statement, tuple[object, ...]]:
    """The statement of a page and its parameters; it reads one animal too many."""
    equal: dict[str, Sequence[object]] = {}
    if query.category_id is not None:
        equal["category_id"] = (query.category_id,)
    if query.status is not None:
        equal["status"] = (query.status.value,)
    elif query.category_id is not None:  # no index has a category alone
        equal["status"] = [status.value for status in PetStatus]
    return page_by_id(f"SELECT {select(columns)} FROM pets", query, equal)


def page_from(pets: list[Pet], limit: int) -> Page:
    """Of a page's animals and one too many, if there is one."""
    return Page(pets[:limit], len(pets) > limit)


# The most frequent ones of clients; the second one without the status, which the caller has.
PAGE, _ = page_of(PageQuery(), PUBLIC_PET)
PAGE_BY_STATUS, _ = page_of(PageQuery(status=PetStatus.AVAILABLE), PUBLIC_BUT_STATUS)

_FOLDED = 'lower(name COLLATE "C")'  # as in the index: the letters of ASCII alone


def by_name(most: int) -> Statement:
    """At most `most` animals in the order of their folded names: beyond a name ($1) and an identifier ($2),
    below a name ($3).

    PostgreSQL knows nothing of a SELECT's result: it plans for a large part of all animals whatever the
    names are, and of those it takes the first ones only by the index. SQLite merges the rest of one name with
    the names beyond.
    """
    begin = f"SELECT {select(PET)} FROM pets WHERE"
    return Statement(
        f"{begin} name = ?1 COLLATE NOCASE AND id > ?2 AND ?1 < ?3"
        f" UNION ALL {begin} name > ?1 COLLATE NOCASE AND name < ?3 COLLATE NOCASE"
        f" ORDER BY name COLLATE NOCASE, id LIMIT {most}",
        f"{begin} ({_FOLDED}, id) > ((SELECT $1::text), (SELECT $2::bigint))"
        f" AND {_FOLDED} < (SELECT $3::text) ORDER BY {_FOLDED}, id LIMIT {most}",
    )


def after_every_name(prefix: str) -> str:
    """What is greater than every name that begins so, and not greater than any other greater name."""
    return prefix + "\U0010ffff" * (NAME_MAX_CHARACTERS + 1)
