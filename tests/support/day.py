"""A customer's day through the Python client: the same on every set-up of the service."""

from __future__ import annotations

import pytest
from petstore_client import Conflict, NotFound, Petstore, RateLimited

_ANIMALS, _PAGE = 25, 10


def play_day(client: Petstore, category_id: int) -> None:
    """Add animals of a category of one's own, walk its pages, look, order, cancel, and look at the usage."""
    names = [f"animal {number}" for number in range(_ANIMALS)]
    added = [client.pets.create(name=name, category_id=category_id) for name in names]
    walked = list(client.pets.list(category_id=category_id, page_size=_PAGE))
    assert walked == added
    newest = client.pets.list(category_id=category_id, order="-id", page_size=_PAGE)
    assert [pet.name for pet in newest] == names[::-1]
    first, second, *_ = added
    assert client.pets.get(first.id) == first
    assert client.pets.get_many([second.id, first.id]) == [first, second]
    with pytest.raises(NotFound):
        client.pets.get(2**62)
    order = client.orders.place(first.id)
    assert (order.pet_id, order.status) == (first.id, "placed")
    with pytest.raises(Conflict):
        client.orders.place(first.id)
    assert client.pets.get(first.id).status == "pending"
    assert client.orders.get(order.id) == order
    client.orders.cancel(order.id)
    assert [(each.id, each.status) for each in client.orders.list(status="cancelled")] == [
        (order.id, "cancelled")
    ]
    assert client.pets.get(first.id).status == "available"
    used = client.usage().minute.used
    assert client.limits is not None
    assert client.limits.minute is not None
    assert client.limits.minute.limit - client.limits.minute.remaining == used >= _ANIMALS


def use_up(client: Petstore, per_minute: int) -> None:
    """Call until the minute is used up: the next call would have to wait, and says so without being sent."""
    for left in range(per_minute - 1, -1, -1):
        client.categories.list()
        assert client.limits is not None
        assert client.limits.minute is not None
        assert client.limits.minute.remaining == left
    with pytest.raises(RateLimited) as refused:
        client.with_options(seconds=0).categories.list()
    assert refused.value.retry_after_seconds is not None
    assert 0 < refused.value.retry_after_seconds <= 61
