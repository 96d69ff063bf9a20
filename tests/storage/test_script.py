"""What scripts of both databases share."""

from __future__ import annotations

import tracemalloc

from petstore.transactions.script import padded


def test_identifiers_are_repeated_to_few_lengths() -> None:
    """More are not repeated: a list of ten thousand takes no room for their square."""
    assert [len(padded(tuple(range(count)))) for count in (0, 1, 2, 10, 11, 100, 101)] == [
        0,
        1,
        10,
        10,
        100,
        100,
        101,
    ]
    assert padded((7, 8, 9)) == (7, 8, 9, 7, 8, 9, 7, 8, 9, 7)
    many = tuple(range(10_001))
    tracemalloc.start()
    try:
        assert padded(many) == many
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000
