"""A page of animals with Starlette. FastAPI takes the same `lifespan` and `request.state`."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from petstore_client import AsyncPetstore, InvalidParameter, RateLimited
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[dict[str, AsyncPetstore]]:
    """One client for all requests; a visitor waits at most five seconds."""
    url, key = os.environ["PETSTORE_URL"], os.environ["PETSTORE_KEY"]
    async with AsyncPetstore(url, key, seconds=5) as petstore:
        yield {"petstore": petstore}


async def animals(request: Request) -> Response:
    """A page, with the address of the next one."""
    try:
        page = await request.state.petstore.pets.page(limit=20, cursor=request.query_params.get("cursor"))
    except InvalidParameter as error:  # the cursor is from the visitor
        return PlainTextResponse(error.message, 400)
    except RateLimited as error:  # for longer than a visitor waits
        after = f"{error.retry_after_seconds or 1:.0f}"
        return PlainTextResponse("Try again later.", 503, {"Retry-After": after})
    following = None
    if page.next_cursor:
        following = str(request.url_for("animals").include_query_params(cursor=page.next_cursor))
    return JSONResponse({"animals": [pet.name for pet in page.items], "next": following})


app = Starlette(routes=[Route("/animals", animals)], lifespan=lifespan)
