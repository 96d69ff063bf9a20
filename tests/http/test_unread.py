"""A body that an answer of the service leaves unread does not cost the next request on the connection."""

from __future__ import annotations

import pytest

from tests.http.kit import serving
from tests.support.cases import every_case
from tests.support.service import Shop

pytestmark = pytest.mark.asyncio(loop_scope="module")

JSON = ("content-type", "application/json")


@every_case(
    ("method", "target", "more", "status"),
    [
        ("POST", "/v1/pets", [("authorization", "Bearer wrong"), JSON], 401),
        ("PATCH", "/v1/pets/1", [("authorization", ""), JSON], 401),
        ("POST", "/v1/nothing", [JSON], 404),
        ("PUT", "/v1/pets", [JSON], 405),
        ("BREW", "/v1/pets", [JSON], 405),
        ("POST", "/v1/pets", [("content-type", "text/plain")], 415),
        ("POST", "/v1/pets", [("host", "a b"), JSON], 400),
        ("POST", "/v1/pets?x=1", [JSON], 400),
        ("DELETE", "/v1/pets/999", [], 404),
        ("GET", "/v1/pets", [], 200),
        ("HEAD", "/v1/pets", [], 200),
        ("OPTIONS", "/v1/pets", [], 204),
        ("POST", "/healthz", [JSON], 405),
        ("POST", "/nothing", [JSON], 404),
        ("GET", "/docs", [], 200),
    ],
)
async def test_the_body_of_any_answer_is_discarded(
    shared_shop: Shop, method: str, target: str, more: list[tuple[str, str]], status: int
) -> None:
    """Under /v1 and outside; also where the answer is not a refusal."""
    headers = dict(
        [("authorization", f"Bearer {shared_shop.key}"), ("host", "a"), ("content-length", "5"), *more]
    )
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    async with serving(shared_shop.application) as service, await service.connect() as client:
        if method == "HEAD":
            client.writer.write(f"HEAD {target} HTTP/1.1\r\n{lines}\r\n{{ ".encode())
            answer = await client.reader.readuntil(b"\r\n\r\n")
        else:
            answer = await client.ask(f"{method} {target} HTTP/1.1\r\n{lines}\r\n".encode(), b"{", b" ")
        assert answer.startswith(b"HTTP/1.1 %d " % status)
        assert b"connection: close" not in answer
        answer = await client.ask(b'"a"', b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200 ")


@every_case("target", ["/v1/nothing", "/nothing"])
@every_case("framing", ["content-length: 65537", "transfer-encoding: chunked"])
async def test_an_answer_announces_that_an_unread_body_ends_the_connection(
    shared_shop: Shop, target: str, framing: str
) -> None:
    """The client sends no further request on it."""
    lines = f"authorization: Bearer {shared_shop.key}\r\nhost: a\r\n{framing}\r\n"
    async with serving(shared_shop.application) as service, await service.connect() as client:
        answer = await client.ask(f"POST {target} HTTP/1.1\r\n{lines}\r\n".encode())
        assert answer.startswith(b"HTTP/1.1 404 ")
        assert b"\r\nconnection: close\r\n" in answer
        assert await client.reader.read() == b""


async def test_a_form_that_was_read_in_part_ends_the_connection(shared_shop: Shop) -> None:
    """The console refuses it in the middle; the rest is too large to be discarded."""
    lines = b"host: a\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: 90000\r\n"
    async with serving(shared_shop.application) as service, await service.connect() as client:
        answer = await client.ask(b"POST /console/sign-in HTTP/1.1\r\n%b\r\n" % lines, b"a" * 70_000)
        assert answer.startswith(b"HTTP/1.1 413 ")
        assert b"\r\nconnection: close\r\n" in answer
