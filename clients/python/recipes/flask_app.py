"""A page of animals with Flask."""

import atexit
import os

from flask import Flask, Response, jsonify, request, url_for
from petstore_client import InvalidParameter, Petstore, RateLimited

app = Flask(__name__)
# All threads share it; a forked process opens connections of its own. A visitor waits at most five seconds.
petstore = Petstore(os.environ["PETSTORE_URL"], os.environ["PETSTORE_KEY"], seconds=5)
atexit.register(petstore.close)


@app.get("/animals")
def animals() -> Response:
    """A page, with the address of the next one."""
    page = petstore.pets.page(limit=20, cursor=request.args.get("cursor"))
    following = url_for("animals", cursor=page.next_cursor) if page.next_cursor else None
    return jsonify(animals=[pet.name for pet in page.items], next=following)


@app.errorhandler(InvalidParameter)
def refuse(error: InvalidParameter) -> tuple[str, int]:
    """The cursor is from the visitor."""
    return error.message, 400


@app.errorhandler(RateLimited)
def wait(error: RateLimited) -> tuple[str, int, dict[str, str]]:
    """The limits are used up for longer than a visitor waits."""
    return "Try again later.", 503, {"Retry-After": f"{error.retry_after_seconds or 1:.0f}"}
