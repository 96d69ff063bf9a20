"""A receiver of webhooks with Flask."""

import os

from flask import Flask, Response, request
from petstore_client import Event, InvalidSignature
from petstore_client.webhooks import verify

app = Flask(__name__)
received: dict[str, Event] = {}


@app.post("/hook")
def hook() -> Response:
    """Answer within 15 seconds: do long work afterwards."""
    try:
        event = verify(request.get_data(), request.headers, os.environ["WEBHOOK_SECRET"])
    except InvalidSignature as error:
        return Response(error.message, 400, mimetype="text/plain")
    received.setdefault(event.id, event)  # it may come again
    return Response(status=204)
