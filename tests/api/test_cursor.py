"""The opaque position in a walk."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from petstore.api.pets import bind_cursor, read_page_query, read_target
from petstore.api.pipeline.paging import START, read_cursor, write_cursor
from petstore.api.pipeline.request import parameters_of
from petstore.core.errors import InvalidParameter
from petstore.core.pets import PetQuery, PetStatus
from petstore.core.values import INT64_MAX, INT64_MIN


def write(after_id: int, query: PetQuery) -> str:
    """The cursor of the page after `after_id` with this filter."""
    return write_cursor(after_id, bind_cursor(query))


def read(cursor: str, query: PetQuery) -> int:
    """The identifier in a cursor that is sent with this filter."""
    return read_cursor(cursor, bind_cursor(query))


_statuses = st.none() | st.sampled_from(list(PetStatus))
_ids = st.none() | st.lists(st.integers(1, INT64_MAX), min_size=1, max_size=5).map(
    lambda ids: tuple(sorted(set(ids)))
)
_queries = st.builds(
    PetQuery,
    limit=st.integers(1, 100),
    status=_statuses,
    ids=_ids,
    category_id=st.none() | st.sampled_from([0, 1, -1]) | st.integers(INT64_MIN, INT64_MAX),
    newest_first=st.booleans(),
)


_CURSORS = [START, write(7, PetQuery()), write(7, PetQuery(status=PetStatus.SOLD)), "7", ""]
_parts = st.sampled_from(
    [f"cursor={cursor}" for cursor in _CURSORS]
    + ["cursor", "%63ursor=" + START, "cursor=%41" + START[1:], "xcursor=7", "limit=3", "limit=0"]
    + ["after=7", "after=0", "after=07", "after", "%61fter=7", "id=after=", "xafter=7"]
    + ["status=sold", "status=sold&", "id=1,2", "id=cursor=", "order=-id", "order=+id", "x=1"]
)


@given(st.lists(_parts, max_size=4).map("&".join))
@settings(max_examples=300, deadline=None)
def test_a_page_is_the_same_wherever_its_position_stands(query: str) -> None:
    """What is read once for all pages of a list gives the page, or the error, of the whole query."""

    def outcome(read_page: Callable[[bytes], PetQuery]) -> object:
        try:
            return read_page(query.encode())
        except InvalidParameter as error:
            return str(error)

    whole = outcome(lambda sent: read_page_query(parameters_of(sent)))
    assert outcome(lambda sent: read_target("/v1", sent)[0]) == whole


@given(st.integers(1, INT64_MAX), _queries)
@settings(max_examples=75, deadline=None)
def test_a_cursor_is_read_back(after_id: int, query: PetQuery) -> None:
    """Any identifier, any filter; 16 characters that need no escape in a URL."""
    cursor = write(after_id, query)
    assert len(cursor) == 16
    assert set(cursor) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
    assert read(cursor, query) == after_id


@given(st.integers(1, INT64_MAX), _queries, _queries)
@settings(max_examples=75, deadline=None)
def test_it_belongs_to_its_filter(after_id: int, query: PetQuery, other: PetQuery) -> None:
    """Another status, set of identifiers, category or order is refused; the page's length is not a filter."""
    cursor = write(after_id, query)
    if replace(query, limit=1) == replace(other, limit=1):
        assert read(cursor, other) == after_id
    else:
        with pytest.raises(InvalidParameter):
            read(cursor, other)


@given(st.integers(1, INT64_MAX), st.integers(0, 15), st.sampled_from("ABab01-_"))
@settings(max_examples=75, deadline=None)
def test_a_cursor_with_one_character_changed_is_refused(after_id: int, place: int, character: str) -> None:
    """A mistyped cursor never shows another page, wherever the mistake is."""
    cursor = write(after_id, PetQuery())
    changed = cursor[:place] + character + cursor[place + 1 :]
    if changed == cursor:
        return
    with pytest.raises(InvalidParameter):
        read(changed, PetQuery())


@pytest.mark.parametrize("after_id", [0, -1, -(2**63)])
def test_an_impossible_position_is_refused(after_id: int) -> None:
    """Well made, but no identifier stands there."""
    with pytest.raises(InvalidParameter):
        read(write(after_id, PetQuery()), PetQuery())


def test_as_by_programs_of_1_0_0() -> None:
    """A walk goes on through an upgrade, and through replicas of both versions."""
    assert write(2, PetQuery(2, PetStatus.AVAILABLE)) == "AAAAAAAAAAJVhOsc"
    assert write(100, PetQuery()) == "AAAAAAAAAGQ4bkyf"
