"""What a call sends and gets beside its arguments and its result: headers, status, request id."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, assert_type

import pytest
from petstore_client import Answered, AsyncPetstore, ConfigurationError, NotFound, Page, Pet, Petstore

from tests.client.kit import PET, Scripted, Served, answer, failure

if TYPE_CHECKING:

    async def typed(petstore: Petstore, tasks: AsyncPetstore) -> None:
        """The result keeps its type."""
        assert_type(petstore.with_response(lambda each: each.pets.get(7)), Answered[Pet])
        assert_type(await tasks.with_response(lambda each: each.pets.page()), Answered[Page[Pet]])


def test_a_result_has_status_headers_and_request_id(service: Served, kind: str) -> None:
    """They are those of its own answer, although the client is shared: nothing is kept between calls."""
    petstore = service.client(kind)
    made = petstore.with_response(lambda each: each.pets.create(name="Rex", category_id=1))
    assert made.value == petstore.pets.get(made.value.id)
    assert (made.status, made.headers["location"]) == (201, f"/v1/pets/{made.value.id}")
    assert made.request_id == service.seen[-2].headers["x-request-id"]
    gone = petstore.with_response(lambda each: each.pets.delete(made.value.id))
    assert (gone.value, gone.status) == (None, 204)
    with pytest.raises(NotFound):
        petstore.with_response(lambda each: each.pets.get(made.value.id))


def test_the_answer_is_that_of_the_last_try(scripted: Scripted) -> None:
    """Options of the client that the call gets count."""
    petstore, script = scripted(failure(503, "unavailable"), answer(200, [PET], {"X-Request-Id": "r-2"}))
    read = petstore.with_response(lambda each: each.with_options(tries=2).pets.get(7))
    assert (read.request_id, len(script.requests)) == ("r-2", 2)


def test_an_iterator_has_no_answer() -> None:
    """An iterator's calls are made later."""
    petstore = Petstore("http://localhost", "pets_test_" + "k" * 38)
    with pytest.raises(ValueError, match="page"):
        petstore.with_response(lambda each: each.pets.list())


def test_the_service_keeps_the_request_id_of_the_caller(service: Served, kind: str) -> None:
    """Other headers go with every call of the client that has them."""
    petstore = service.client(kind).with_options(headers={"X-Shop": "north"}, request_id="order-4711/a")
    assert petstore.with_response(lambda each: each.usage()).request_id == "order-4711/a"
    with pytest.raises(NotFound) as caught:
        petstore.with_options(seconds=9).pets.get(10**9)
    assert caught.value.request_id == "order-4711/a"


def test_headers_add_to_those_of_the_client(scripted: Scripted) -> None:
    """`with_options` adds headers: the last of a name in any case counts, and the client itself has none."""
    petstore, script = scripted(answer(200, [PET]))
    shop = petstore.with_options(headers={"X-Shop": "north", "X-Till": "1"})
    shop.with_options(headers={"x-shop": "south"}, request_id="a").pets.get(7)
    petstore.pets.get(7)
    first, second = (request.headers for request in script.requests)
    assert (first["x-shop"], first["x-till"], first["x-request-id"]) == ("south", "1", "a")
    assert not {"x-shop", "x-till", "x-request-id"} & second.keys()


@pytest.mark.parametrize(
    "options",
    [
        *({"headers": {name: "x"}} for name in ("Authorization", "idempotency-key", "If-Match", "Host")),
        *({"headers": {name: "x"}} for name in ("Content-Type", "X-Request-Id", "two words", "")),
        *({"headers": {"X-Shop": value}} for value in ("", "a\r\nHost: b", "schön", " a")),
        *({"request_id": value} for value in ("", "a b", "a" * 129, "pets_live_a", "a\n")),
    ],
    ids=repr,
)
def test_what_is_not_the_callers_is_refused(kind: str, options: dict[str, Any]) -> None:
    """A header that the client sets itself, or a value the service would not keep, is refused at once."""
    client: Callable[..., Any] = Petstore if kind == "sync" else AsyncPetstore
    with pytest.raises(ConfigurationError):
        client("http://localhost", "pets_test_" + "k" * 38).with_options(**options)
