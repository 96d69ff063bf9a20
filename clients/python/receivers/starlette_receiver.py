"""A receiver of webhooks with Starlette; in FastAPI `hook` is the same."""

import os

from petstore_client import Event, InvalidSignature
from petstore_client.webhooks import verify
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

received: dict[str, Event] = {}


async def hook(request: Request) -> Response:
    """Answer within 15 seconds: do long work afterwards."""
    try:
        event = verify(await request.body(), request.headers, os.environ["WEBHOOK_SECRET"])
    except InvalidSignature as error:
        return PlainTextResponse(error.message, 400)
    received.setdefault(event.id, event)  # it may come again
    return Response(status_code=204)


app = Starlette(routes=[Route("/hook", hook, methods=["POST"])])
