"""A receiver of webhooks for any WSGI server."""

import os
from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIEnvironment

from petstore_client import Event, InvalidSignature
from petstore_client.webhooks import verify

received: dict[str, Event] = {}


def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answer within 15 seconds: do long work afterwards."""
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    headers = {
        name.removeprefix("HTTP_").replace("_", "-"): value
        for name, value in environ.items()
        if name.startswith("HTTP_WEBHOOK_")
    }
    try:
        event = verify(body, headers, os.environ["WEBHOOK_SECRET"])
    except InvalidSignature as error:
        start_response("400 Bad Request", [("Content-Type", "text/plain; charset=utf-8")])
        return [error.message.encode()]
    received.setdefault(event.id, event)  # it may come again
    start_response("204 No Content", [])
    return []
