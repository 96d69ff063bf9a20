"""Bodies of createPet and updatePet of every kind. Those that are refused: refusals.py."""

from __future__ import annotations

import json

import pytest

from tests.api.writing import Writing
from tests.support.cases import every_case

pytestmark = pytest.mark.asyncio(loop_scope="module")

GOOD = b'{"name":"Rex","categoryId":1}'


class TestAnyBody:
    """What may come with a body, and in it."""

    @every_case(
        "extra",
        [
            ("expect", "100-continue"), ("transfer-encoding", "chunked"), ("te", "trailers"),
            ("trailer", "x-checksum"), ("connection", "upgrade"), ("upgrade", "h2c"), ("content-md5", "x"),
            ("content-range", "bytes 0-1/9"), ("content-disposition", "attachment"),
            ("x-content-type-options", "sniff"), ("prefer", "return=minimal"), ("if-match", "*"),
        ],
    )  # fmt: skip
    async def test_headers_that_mean_nothing(self, shared_writing: Writing, extra: tuple[str, str]) -> None:
        """The animal is added or changed."""
        assert (await shared_writing.send_json(GOOD, extra)).status == shared_writing.status

    async def test_any_byte_may_be_wrong(self, shared_writing: Writing) -> None:
        """Every single one replaced or left out: an answer of the contract, never a 500."""
        body = b'{"name":"R\\u0065x","categoryId":-12,"status":"sold"}'
        for place in range(len(body)):
            for byte in (b"", b"\x00", b'"', b"\\", b"{", b"}", b",", b"\xff", b"e", b"9"):
                answer = await shared_writing.send_json(body[:place] + byte + body[place + 1 :])
                assert answer.status in (shared_writing.status, 400)

    async def test_the_message_stays_short(self, shared_writing: Writing) -> None:
        """However much is wrong: the document bounds it, and every answer is held to the document."""
        unknown = {chr(0x1F400 + number) * 99: None for number in range(20)}
        sent = {**unknown, "name": 1, "categoryId": 2**70, "status": "x" * 9_999}
        answer = await shared_writing.send_json(json.dumps(sent).encode())
        assert 700 < len(answer.json()["message"]) < 2_000
