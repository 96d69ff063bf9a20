"""The HTTP server in the test's own process, in front of a service whose clock is steered."""

from __future__ import annotations

from tests.http.kit import serving
from tests.support.service import Shop

PATHS = ("/v1/pets", "/v1/nothing", "/docs", "/healthz", "/metrics", "/openapi.json", "/nothing", "/docs/")


async def test_date_follows_the_clock_back(shop: Shop) -> None:
    """Every kind of answer has one Date, which follows the clock at once, forwards and back."""

    async def dates() -> list[bytes]:
        lines = f"Host: 127.0.0.1\r\nAuthorization: Bearer {shop.key}\r\n\r\n"
        async with serving(shop.application) as service, await service.connect() as client:
            answers = [await client.ask(f"GET {path} HTTP/1.1\r\n{lines}".encode()) for path in PATHS]
        heads = [answer.partition(b"\r\n\r\n")[0].lower() for answer in answers]
        return [line for head in heads for line in head.split(b"\r\n") if line.startswith(b"date")]

    assert await dates() == [b"date: fri, 15 jan 2027 08:00:30 gmt"] * len(PATHS)
    shop.clock.advance(20 * 86_400)
    assert await dates() == [b"date: thu, 04 feb 2027 08:00:30 gmt"] * len(PATHS)
    shop.clock.advance(-20 * 86_400)
    assert await dates() == [b"date: fri, 15 jan 2027 08:00:30 gmt"] * len(PATHS)
