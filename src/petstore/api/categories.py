"""The operation on names of categories: listCategories."""

from __future__ import annotations

import msgspec

from petstore.api.pipeline.request import Request
from petstore.api.pipeline.response import Response, make_page
from petstore.core.keys import Caller
from petstore.core.preconditions import encode
from petstore.transactions.categories import Categories


class CategoryOperations(msgspec.Struct, kw_only=True):
    """One handler for each operationId."""

    categories: Categories

    async def list_categories(self, request: Request, caller: Caller) -> Response:
        """GET /categories: those that have a name, in one answer."""
        return make_page(encode(await self.categories.all()))
