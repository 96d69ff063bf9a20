"""Changes on the condition that nobody else made one: tags, `if_match`, and what a 412 says."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from petstore_client import Petstore, PreconditionFailed

from tests.client.kit import DROPPED, PET, Scripted, answer, failure

CHANGED = failure(412, "precondition_failed")
TAG = '"abc"'


def calls(petstore: Any, **condition: str) -> list[Any]:
    """Each call that takes a condition."""
    return [
        lambda: petstore.pets.update(7, name="Max", **condition),
        lambda: petstore.pets.delete(7, **condition),
        lambda: petstore.orders.update(7, status="approved", **condition),
        lambda: petstore.orders.cancel(7, **condition),
    ]


def test_an_animal_changes_only_as_it_was_seen(petstore: Petstore) -> None:
    """The tag of a creation, a reading or a change is that of the animal as it is then."""
    pets = petstore.pets
    made = pets.create(name="Rex", category_id=1)
    assert made.etag == pets.get(made.id).etag != ""
    changed = pets.update(made.id, name="Max", if_match=made.etag)
    with pytest.raises(PreconditionFailed) as caught:
        pets.update(made.id, name="Bo", if_match=made.etag)
    assert not caught.value.outcome_unknown
    with pytest.raises(PreconditionFailed):
        pets.delete(made.id, if_match=made.etag)
    assert pets.get(made.id) == changed
    pets.delete(made.id, if_match=changed.etag)


def test_an_animal_that_came_in_gzip_changes_too(petstore: Petstore) -> None:
    """A list of one with a long name is longer than 1 KiB, and has another tag in gzip: it serves as well."""
    pets = petstore.pets
    made = pets.create(name="\U0001f408" * 255, category_id=1)
    *_, seen = (pets.get(made.id) for _ in range(3))
    assert (seen, seen.etag) == (made, made.etag[:-1] + '-gzip"')
    assert pets.update(made.id, name="Max", if_match=seen.etag).name == "Max"


def test_an_order_changes_only_as_it_was_seen(petstore: Petstore) -> None:
    """The tag of an order's placing, reading or change is that of its state, up to its cancellation."""
    placed = petstore.orders.place(petstore.pets.create(name="Rex", category_id=1).id)
    assert placed.etag == petstore.orders.get(placed.id).etag != ""
    approved = petstore.orders.update(placed.id, status="approved", if_match=placed.etag)
    with pytest.raises(PreconditionFailed):
        petstore.orders.cancel(placed.id, if_match=placed.etag)
    petstore.orders.cancel(placed.id, if_match=approved.etag)


def test_a_tag_is_no_part_of_an_animal(petstore: Petstore) -> None:
    """One of a list equals the same one by itself, and has no tag: the list's is another."""
    pets = petstore.pets
    made = pets.create(name="Rex", category_id=1)
    listed = next(iter(pets.list(order="-id")))
    assert listed == made
    assert listed.etag == ""
    assert "etag" not in repr(made)


@pytest.mark.parametrize("tag", ["", "abc", '"a"\n', '"a", "b"', '"é"'])
def test_what_is_no_tag_is_refused(scripted: Scripted, tag: str) -> None:
    """An `if_match` that is no tag is not sent: the empty one of a list must not stand for any state."""
    petstore, script = scripted(answer(200, PET))
    for call in calls(petstore, if_match=tag):
        with pytest.raises(ValueError, match="if_match"):
            call()
    assert script.requests == []


@pytest.mark.parametrize("number", range(4))
def test_a_412_after_a_lost_answer_is_of_unknown_outcome(scripted: Scripted, number: int) -> None:
    """The lost try may be what changed the tag. One that was not sent is not."""
    for before, unknown in [(DROPPED, True), (httpx2.ConnectError("nobody listens"), False)]:
        petstore, _ = scripted(before, CHANGED)
        with pytest.raises(PreconditionFailed) as caught:
            calls(petstore, if_match=TAG)[number]()
        assert caught.value.outcome_unknown is unknown
