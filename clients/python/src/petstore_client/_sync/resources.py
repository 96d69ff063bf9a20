# Made from _async/resources.py by `python -m tools.sync_client`.
"""Animals, orders and categories. Each method says which level of key it needs: read, write or manage."""

from __future__ import annotations

import builtins
from collections.abc import Generator, Iterable
from datetime import datetime

from petstore_client import calls
from petstore_client._sync.runner import Runner
from petstore_client.answers import Page
from petstore_client.arguments import NOT_GIVEN, NotGiven
from petstore_client.models import Category, Order, OrderScope, OrderStatus, Pet, PetOrder, PetStatus


class Pets:
    """Animals."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    def list(
        self,
        *,
        status: PetStatus | None = None,
        category_id: int | None = None,
        order: PetOrder | None = None,
        ids: Iterable[int] | None = None,
        page_size: int = calls.PAGE_SIZE_MAX,
    ) -> Generator[Pet]:
        """All animals of the filters, by pages of `page_size` (1 to 100), a call each. Needs level read."""
        return self._runner.walk(calls.list_pets(status, category_id, order, ids, page_size))

    def page(
        self,
        *,
        limit: int = calls.PAGE_SIZE_MAX,
        cursor: str | None = None,
        status: PetStatus | None = None,
        category_id: int | None = None,
        order: PetOrder | None = None,
        ids: Iterable[int] | None = None,
    ) -> Page[Pet]:
        """At most `limit` (1 to 100) animals of the filters, after `cursor`, if given. Raises
        InvalidParameter unless that is the `next_cursor` of a page of these filters. Needs level read."""
        call = calls.list_pets(status, category_id, order, ids, limit, cursor)
        return Page((), None) if call is None else self._runner.run(call)

    def get(self, pet_id: int) -> Pet:
        """One animal. Raises NotFound. Needs level read."""
        return self._runner.run(calls.get_pet(pet_id))

    def get_many(self, ids: Iterable[int]) -> builtins.list[Pet]:
        """The animals among these that exist, by ascending id; one call for each 100. Needs level read."""
        return [pet for call in calls.get_pets(ids) for pet in self._runner.walk(call)]

    def get_by_path(self, pet_id: int) -> Pet:
        """Deprecated: use `get`. Warns once (OperationDeprecated) of the removal's date. Needs level read."""
        return self._runner.run(calls.get_pet_by_path(pet_id))

    def create(
        self,
        *,
        name: str,
        category_id: int,
        status: PetStatus | None = None,
        idempotency_key: str | None = None,
    ) -> Pet:
        """Add an animal, once, whatever the network does. Needs level write.

        The client makes an `Idempotency-Key`; give your own to repeat the call in another process.
        """
        return self._runner.run(calls.create_pet(name, category_id, status, idempotency_key))

    def update(
        self,
        pet_id: int,
        *,
        name: str | None = None,
        category_id: int | None = None,
        status: PetStatus | None = None,
        if_match: str | None = None,
    ) -> Pet:
        """Change what is given. Raises NotFound, Conflict, PreconditionFailed. Needs level manage.

        With the `etag` of an earlier answer as `if_match`, only if the animal is still as it was; without it
        the call is not repeated after a lost answer.
        """
        return self._runner.run(calls.update_pet(pet_id, name, category_id, status, if_match))

    def delete(self, pet_id: int, *, if_match: str | None = None) -> None:
        """Remove an animal. Raises NotFound, PreconditionFailed, Conflict while an order holds it. Needs
        level manage."""
        self._runner.run(calls.delete_pet(pet_id, if_match))


class Orders:
    """Orders: the account's own, and for a key of the level manage the changes of all."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    def list(
        self,
        *,
        status: OrderStatus | None = None,
        scope: OrderScope | None = None,
        page_size: int = calls.PAGE_SIZE_MAX,
    ) -> Generator[Order]:
        """The account's orders, page by page. Needs level read; `scope="all"`, for the orders of all
        accounts, needs level manage."""
        return self._runner.walk(calls.list_orders(status, scope, page_size))

    def page(
        self,
        *,
        limit: int = calls.PAGE_SIZE_MAX,
        cursor: str | None = None,
        status: OrderStatus | None = None,
        scope: OrderScope | None = None,
    ) -> Page[Order]:
        """One page of `list`; the arguments are as for animals."""
        return self._runner.run(calls.list_orders(status, scope, limit, cursor))

    def get(self, order_id: int) -> Order:
        """One order of the account. Raises NotFound. Needs level read."""
        return self._runner.run(calls.get_order(order_id))

    def place(
        self, pet_id: int, *, reference: str | None = None, idempotency_key: str | None = None
    ) -> Order:
        """Order an available animal, once, whatever the network does. Raises Conflict. Needs level write.

        `reference` is your own text, of 1 to 255 characters.
        """
        return self._runner.run(calls.place_order(pet_id, reference, idempotency_key))

    def cancel(self, order_id: int, *, if_match: str | None = None) -> None:
        """Cancel an order of the account. Raises NotFound, PreconditionFailed, Conflict when it is
        delivered. Needs level write."""
        self._runner.run(calls.cancel_order(order_id, if_match))

    def update(
        self,
        order_id: int,
        *,
        status: OrderStatus | None = None,
        ship_date: datetime | NotGiven | None = NOT_GIVEN,
        if_match: str | None = None,
    ) -> Order:
        """Move any account's order. Raises NotFound, Conflict, PreconditionFailed. Needs level manage.

        None as `ship_date` takes it back. `if_match` is as for an animal.
        """
        return self._runner.run(calls.update_order(order_id, status, ship_date, if_match))


class Categories:
    """Names that staff gave to categories."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    def list(self) -> builtins.list[Category]:
        """All of them, by ascending id. Needs level read."""
        return [*self._runner.run(calls.list_categories())]
