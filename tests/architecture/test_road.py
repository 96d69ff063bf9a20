"""How many of our modules one request enters; `python -m tests.architecture.road` prints them."""

from __future__ import annotations

from functools import cache

import pytest

from tests.architecture import road

MODULES = {"cached page": 13, "uncached page": 17, "creation": 21}
ROOMS = 7

walk = cache(road.walk)


@pytest.mark.parametrize("name", MODULES)
def test_a_request_enters_few_modules(name: str) -> None:
    """A reader of one request opens so many files at most. Lower the number when the road becomes shorter."""
    modules = walk()[name]
    assert len(modules) <= MODULES[name], road.told(modules)
    assert len(road.rooms(modules)) <= ROOMS, road.told(modules)
