"""All that the recorder knows of the program's inside: adapt this file alone when names there change."""

from __future__ import annotations

from typing import Any

from petstore import config
from petstore.wiring.asgi import Application
from tests.support.clock import ManualClock
from tests.support.postgres import fresh_database
from tests.support.service import Answer, call
from tests.support.valkey import Client, emptied_url

__all__ = ["Answer", "Client", "ManualClock", "application", "call", "emptied_url", "fresh_database"]

# Replaced in a copy of the source for recordings with Valkey: (files, old text as a pattern, new text).
# The scripts take the steered time, and a busy machine's late answer is no outage.
PATCHES = (
    ("*.lua", r"redis\.call\('TIME'\)", "redis.call('HMGET', '{petstore}:clock', 'seconds', 'microseconds')"),
    ("*.py", r"settings\.valkey_timeout_ms / 1_000", "20.0"),
)


def application(environment: dict[str, str], clock: ManualClock) -> Any:
    """The service as `petstore serve` builds it: an ASGI application with `start` and `stop`."""
    return Application(config.load(environment), clock)
