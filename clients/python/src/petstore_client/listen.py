"""The program petstore-listen: sends events, signed as those of a webhook, to an address on this machine."""

from __future__ import annotations

import argparse
import base64
import json
import logging
import os
import secrets
import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from urllib.parse import urlsplit

import httpx2

from petstore_client._sync.client import Petstore
from petstore_client._sync.events import Follow
from petstore_client.connection import __version__, is_loopback
from petstore_client.errors import ConfigurationError, PetstoreError, escaped
from petstore_client.feed import NOW
from petstore_client.models import Event
from petstore_client.runtime import PROCESS
from petstore_client.webhooks import check_secret, sign

_ANSWER_SECONDS = 15.0  # as the service waits for an answer
_PAUSES_SECONDS = (1.0, 2.0, 4.0)  # before an event is sent again

_say = partial(print, flush=True)


def main() -> None:
    """Send each event until Ctrl-C or SIGTERM. Exits with 1 when the service refuses, 2 for wrong use."""
    parser = _parser()
    given = parser.parse_args()
    address, key = os.environ.get("PETSTORE_URL"), os.environ.get("PETSTORE_KEY")
    if not address or not key:
        parser.error("Set PETSTORE_URL to the service's address, and PETSTORE_KEY to an API key.")
    try:
        petstore = Petstore(address, key)
    except ConfigurationError as error:
        parser.error(f"PETSTORE_URL and PETSTORE_KEY: {error}")
    logging.basicConfig(format="%(message)s")
    logging.getLogger("petstore_client").setLevel(logging.INFO)  # why it waits for the service
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    secret = given.secret or "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()
    _say(f"The events of {address} go to {given.forward}. Ctrl-C ends this.")
    _say(f"Verify their signatures with the secret {secret}")
    with petstore, httpx2.Client(timeout=_ANSWER_SECONDS, trust_env=False) as receiver:
        follow = petstore.events.follow(after=given.after, types=given.type)
        try:
            _forward(follow, partial(_post, receiver, given.forward, secret))
        except PetstoreError as error:
            sys.exit(f"petstore-listen: {error}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "petstore-listen",
        description="Sends the events of your account to a program on this machine, signed as to a webhook."
        " PETSTORE_URL is the service's address, PETSTORE_KEY an API key.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=__version__)
    add = parser.add_argument
    add("--forward", required=True, type=_local, metavar="URL", help="such as http://127.0.0.1:3000/hook")
    add("--type", action="append", default=[], help="such as pet.updated or pet.*; repeatable (default: all)")
    add("--after", default=NOW, metavar="BOOKMARK", help="begin after this bookmark (default: now)")
    add("--secret", type=_secret, help="sign with this one (default: a new one)")
    return parser


def _local(address: str) -> str:
    try:
        url, port = httpx2.URL(address), urlsplit(address).port  # each finds faults of its own
        is_local = url.scheme == "http" and is_loopback(url.host) and port != 0
    except (ValueError, httpx2.InvalidURL):
        is_local = False
    if not is_local:
        raise argparse.ArgumentTypeError(
            f"{address!r} is not on this machine. Give one such as http://127.0.0.1:3000/hook;"
            " for another machine make a webhook."
        )
    return address


def _secret(text: str) -> str:
    try:
        return check_secret(text)
    except ConfigurationError as error:
        raise argparse.ArgumentTypeError(error.message) from None


def _forward(follow: Follow, post: Callable[[Event], str]) -> None:
    """Post events until the program is interrupted; then say with which bookmark to go on."""
    bookmark = follow.after
    try:
        for event in follow:
            named = f"{escaped(event.type)} {escaped(event.id)}"
            outcome = _tried(named, event, post)
            bookmark = follow.after
            _say(f"{named}: {outcome}")
    except KeyboardInterrupt:
        _say("Ended." if bookmark == NOW else f"Ended. Go on from here with --after {bookmark}")


def _tried(named: str, event: Event, post: Callable[[Event], str]) -> str:
    """The status that came back, or that none came."""
    for pause in (*_PAUSES_SECONDS, None):
        try:
            return post(event)
        except httpx2.RequestError as error:
            if pause is None:
                break
            _say(f"{named}: no answer ({type(error).__name__}), sent again in {pause:.0f} s")
            PROCESS.wait(threading.Event(), pause)
    return f"no answer in {len(_PAUSES_SECONDS) + 1} tries, passed over"


def _post(receiver: httpx2.Client, address: str, secret: str, event: Event) -> str:
    content = _document(event)
    headers = {"Content-Type": "application/json", "User-Agent": f"petstore-listen/{__version__}"}
    headers |= sign(event.id, int(PROCESS.wall()), content, secret)
    with receiver.stream("POST", address, content=content, headers=headers) as response:
        return str(response.status_code)


def _document(event: Event) -> bytes:
    """The event as the service writes it."""
    moment = event.timestamp.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    document = {"id": event.id, "type": event.type, "timestamp": moment, "data": event.data}
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


if __name__ == "__main__":
    main()
