"""Pages of animals, for both databases: each statement walks one index from the page's first animal on."""

from __future__ import annotations

from petstore.core.pets import PageQuery, PetStatus
from petstore.core.values import INT64_MAX, NAME_MAX_CHARACTERS
from petstore.transactions.rows import PET, PET_BUT_STATUS, select
from petstore.transactions.script import Statement, statement

_PETS = f"SELECT {select(PET)} FROM pets WHERE"

_OTHER = str.maketrans("<>", "><")


class Direction:
    """The statements of one order; their parameters are those of `page_of`."""

    def __init__(self, beyond: str, order: str) -> None:
        self.beyond = beyond
        self.order = order
        self.all = statement(f"{_PETS} id {beyond} $1 ORDER BY id{order} LIMIT $2")
        self.by_status = self._by_status()
        self.by_category_and_status = self._within_category("$4")
        self.by_category = self._merged()

    def _by_status(self) -> Statement:
        """Where PostgreSQL expects a status to be frequent, it prefers the index by `id`, and passes over
        millions of animals if they are elsewhere. An order by the status too leaves it one index.
        """
        return Statement(
            f"{_PETS} status = ?3 AND id {self.beyond} ?1 ORDER BY id{self.order} LIMIT ?2",
            f"{_PETS} (status, id) {self.beyond} ($3, $1) AND status {self.beyond.translate(_OTHER)}= $3"
            f" ORDER BY status{self.order}, id{self.order} LIMIT $2",
        )

    def _within_category(self, status: str) -> Statement:
        """The order by the category leaves PostgreSQL one index, and `= ANY` keeps it from seeing that it is
        the same everywhere. The last few thousand animals of a walk it may sort.
        """
        end = f"AND status = {status} AND id {self.beyond} $1 ORDER BY"
        return Statement(
            f"{_PETS} category_id = $3 {end} id{self.order} LIMIT $2".replace("$", "?"),
            f"{_PETS} category_id = ANY (ARRAY[$3::bigint]) {end} category_id{self.order}, id{self.order}"
            " LIMIT $2",
        )

    def _merged(self) -> Statement:
        """A category without a status: a walk for each status, merged.

        SQLite merges as it goes; PostgreSQL sorts at most a page of each.
        """
        walks = [self._within_category(f"'{status}'") for status in PetStatus]
        unlimited = [walk.sqlite.partition(" ORDER BY")[0] for walk in walks]
        limited = [f"({walk.postgres})" for walk in walks]
        end = f"ORDER BY id{self.order} LIMIT"
        return Statement(
            f"{' UNION ALL '.join(unlimited)} {end} ?2",
            f"SELECT * FROM ({' UNION ALL '.join(limited)}) AS merged {end} $2",
        )


OLDEST_FIRST = Direction(">", "")
NEWEST_FIRST = Direction("<", " DESC")


PAGE = OLDEST_FIRST.all
# The most frequent ones, without the status, which the caller has.
PAGE_BY_STATUS = Statement(
    *(
        each.replace(select(PET), select(PET_BUT_STATUS))
        for each in (OLDEST_FIRST.by_status.sqlite, OLDEST_FIRST.by_status.postgres)
    )
)


def direction_of(query: PageQuery) -> tuple[Direction, int]:
    """The order of a page, and the identifier that it begins behind."""
    if query.newest_first:
        return NEWEST_FIRST, query.after_id or INT64_MAX
    return OLDEST_FIRST, query.after_id


def page_of(query: PageQuery) -> tuple[Statement, tuple[object, ...]]:
    """The statement of a page without identifiers, and its parameters; it reads one animal too many."""
    direction, after = direction_of(query)
    begin = after, query.limit + 1
    if query.category_id is None:
        if query.status is None:
            return direction.all, begin
        return direction.by_status, (*begin, query.status.value)
    if query.status is None:
        return direction.by_category, (*begin, query.category_id)
    return direction.by_category_and_status, (*begin, query.category_id, query.status.value)


_FOLDED = 'lower(name COLLATE "C")'  # as in the index: the letters of ASCII alone


def by_name(most: int) -> Statement:
    """At most so many animals in the order of their folded names: beyond a name ($1) and an identifier ($2),
    below a name ($3).

    PostgreSQL knows nothing of a SELECT's result: it plans for a large part of all animals whatever the
    names are, and of those it takes the first ones only by the index. SQLite merges the rest of one name with
    the names beyond.
    """
    begin = f"SELECT {select(PET)} FROM pets WHERE name"
    return Statement(
        f"{begin} = ?1 COLLATE NOCASE AND id > ?2 AND ?1 < ?3"
        f" UNION ALL {begin} > ?1 COLLATE NOCASE AND name < ?3 COLLATE NOCASE"
        f" ORDER BY name COLLATE NOCASE, id LIMIT {most}",
        f"{_PETS} ({_FOLDED}, id) > ((SELECT $1::text), (SELECT $2::bigint))"
        f" AND {_FOLDED} < (SELECT $3::text) ORDER BY {_FOLDED}, id LIMIT {most}",
    )


def after_every_name(prefix: str) -> str:
    """What is greater than every name that begins so, and not greater than any other greater name."""
    return prefix + "\U0010ffff" * (NAME_MAX_CHARACTERS + 1)
