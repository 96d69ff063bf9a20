"""A Valkey behind a network that loses a packet now and then, and repeats it after 200 ms: no outage."""

from __future__ import annotations

from structlog.testing import capture_logs

from petstore import config
from petstore.core.clock import SystemClock
from petstore.wiring.application import Application
from tests.support.postgres import fresh_database
from tests.support.proxy import open_proxy
from tests.support.service import Shop
from tests.support.valkey import ValkeyServer


async def test_late_answers_are_no_outage() -> None:
    """Every eighth answer comes 250 ms late, with the settings of the release: a limit of 20 is exact, and
    the log has no line about it.

    The delay and the watchdog share an event loop, so a busy machine holds up both.
    """
    limit, asked = 20, 32
    with fresh_database(migrated=True) as database, ValkeyServer().start() as valkey:
        async with open_proxy(valkey.socket) as proxy:
            environment = {
                "PETSTORE_DATABASE_URL": database,
                "PETSTORE_DATABASE_POOL": "2",
                "PETSTORE_VALKEY_URL": f"valkey://127.0.0.1:{proxy.port}",
                "PETSTORE_REPLICAS": "4",
                "PETSTORE_ACCESS_LOG": "off",
            }
            application = Application(config.load(environment), SystemClock())
            await application.start()
            shop = Shop(application, None, None, steers_counters=False)  # type: ignore[arg-type]
            secret, _ = await shop.open_account("late", "enterprise", limit, 1_000)
            with capture_logs() as lines:
                statuses = []
                for number in range(asked):
                    proxy.delay_seconds = 0.0 if number % 8 else 0.25
                    statuses.append((await shop.ask("GET", "/v1/pets", key=secret)).status)
            await application.stop()
    assert (statuses, lines) == ([200] * limit + [429] * (asked - limit), [])
