"""The long campaign of crowds without keys: python -m tests.torture.flood --seed N --seconds S

Half of the time 1,300 connections ask a service on PostgreSQL for its readiness, then as many send keys that
nobody was given, while clients with a key add and list animals. An answer to these that is not a success is
printed, and so is one to the crowd that it would not get alone; then the exit code is 1. The seed changes
nothing: there is no chance in it.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.support.flood import READINESS, Flood, Shoppers, unknown_keys
from tests.support.postgres import fresh_database
from tests.support.server import Server, issue_key, running_server
from tests.torture.options import campaign_parser


def half(server: Server, name: str, requests: list[bytes], answers: set[int], seconds: float) -> bool:
    """One kind of crowd; whether all went well."""
    flood, shoppers = Flood(server.port, requests), Shoppers(server.port, server.key)
    with flood.going_on():
        shoppers.shop(seconds)
    sys.stdout.write(
        f"{name}: {dict(flood.statuses)}, {flood.broken} broken; with a key {dict(shoppers.statuses)},"
        f" slowest {shoppers.slowest:.2f} s\n"
    )
    return (
        set(shoppers.statuses) == {"POST 201", "GET 200"}
        and set(flood.statuses) <= answers
        and not flood.broken
    )


def main() -> int:
    """Run the campaign; the exit code."""
    arguments = campaign_parser("flood", __doc__, is_seeded=False).parse_args()
    seconds = arguments.seconds / 2
    with tempfile.TemporaryDirectory() as folder, fresh_database() as url:
        key = issue_key(url)
        with running_server(Path(folder), database_url=url, access_log="off") as server:
            server.key = key
            well = [
                half(server, "readiness", READINESS, {200}, seconds),
                half(server, "unknown keys", unknown_keys(), {401, 429}, seconds),
            ]
    return 0 if all(well) else 1


if __name__ == "__main__":
    sys.exit(main())
