"""Media types, encodings and framing of createPet and updatePet: what is refused with what (I12, I13)."""

from __future__ import annotations

import gzip

import pytest

from tests.api.checks import CheckedShop, Writing
from tests.support.service import Answer, Pairs

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def shop(shared_shop: CheckedShop) -> CheckedShop:
    """No request of these tests changes anything."""
    return shared_shop


@pytest.fixture
def writing(shared_writing: Writing) -> Writing:
    return shared_writing


GOOD = b'{"name":"Rex","categoryId":1}'
_MEDIA_TYPES = [
    None, "", " ", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain",
    "text/json", "application/xml", "application/octet-stream", "application/javascript",
    "application/jsonp", "application/json5", "application/ndjson", "application/json-seq",
    "application/json-patch+json", "application/merge-patch",
    "application/vnd.api+json", "application/problem+json", "application/ld+json", "application/*", "*/*",
    "json", "application", "application/", "/json", "application/json; charset=latin1",
    "application/json; charset=utf-16", "application/json; charset=ascii", "application/json; charset=",
    'application/json; charset=""',
    "application/json; charset=utf-8; charset=latin1", "application/json; charset=utf-8 latin1",
    "application/json; charset", "application/json; =x", 'application/json; profile="x',
    'application/json; a="\\"; charset=latin1', 'application/json; a="x"; charset=latin1',
    'application/json; Charset="latin1"', "application/json; a=b c", "application/json" + "; " * 4_000 + "x",
    "application/json,text/plain", "text/plain, application/json", "application/json application/json",
    "application / json", "application/json\x00", "application/jsonapplication/json", "xapplication/json",
    "application/jsonx", "application/json\ttext/plain", "applicatïon/json",
    "application/json; charset=utf-8\xff", "a" * 5_000,
]  # fmt: skip
_ENCODINGS = [
    "gzip", "x-gzip", "deflate", "br", "zstd", "compress", "GZIP", "gzip, identity", "identity, gzip",
    "aes128gcm", "identity, identity", "*", "utf-8", "base64", "gzip\x00", "ïdentity",
]  # fmt: skip


async def refused(writing: Writing, headers: Pairs, body: bytes = GOOD) -> Answer:
    """415 for a body that would be a good animal; nothing has changed."""
    before = writing.shop.fingerprint()
    answer = await writing.send(headers, body)
    assert (answer.status, answer.code) == (415, "unsupported_media_type")
    assert ("accept-patch" in answer.headers) == (writing.method == "PATCH")
    assert writing.shop.fingerprint() == before
    return answer


class TestMediaType415:
    """Anything but `application/json`, with no charset other than UTF-8."""

    @pytest.mark.parametrize("media_type", _MEDIA_TYPES)
    async def test_refused(self, writing: Writing, media_type: str | None) -> None:
        """The message says what to send, since curl's default is the classic first mistake."""
        answer = await refused(writing, [("content-type", media_type)])
        message = answer.json()["message"]
        assert "'Content-Type: application/json'" in message
        assert ("'application/merge-patch+json'" in message) == (writing.method == "PATCH")

    @pytest.mark.parametrize(
        "media_type",
        ["application/merge-patch+json", "Application/Merge-Patch+JSON; charset=utf-8"],
    )
    async def test_a_merge_patch(self, writing: Writing, media_type: str) -> None:
        """RFC 7396: of a PATCH alone."""
        if writing.method == "PATCH":
            assert (await writing.send([("content-type", media_type)], GOOD)).status == 200
        else:
            await refused(writing, [("content-type", media_type)])

    async def test_doubled(self, writing: Writing) -> None:
        """Two Content-Type headers, even of one value."""
        await refused(writing, [("content-type", "application/json"), ("content-type", "application/json")])


class TestContentEncoding415:
    """A body is read as it is, never decompressed."""

    @pytest.mark.parametrize("encoding", _ENCODINGS)
    async def test_refused(self, writing: Writing, encoding: str) -> None:
        """Whatever encoding is named."""
        answer = await refused(
            writing, [("content-type", "application/json"), ("content-encoding", encoding)]
        )
        assert "Content-Encoding" in answer.json()["message"]

    @pytest.mark.parametrize("second", ["gzip", "identity"])
    async def test_doubled(self, writing: Writing, second: str) -> None:
        """Two headers say two things, whatever the first one is."""
        encodings = [("content-encoding", "identity"), ("content-encoding", second)]
        await refused(writing, [("content-type", "application/json"), *encodings])

    async def test_a_bomb_stays_packed(self, writing: Writing) -> None:
        """A few kilobytes that would be many megabytes."""
        headers = [("content-type", "application/json"), ("content-encoding", "gzip")]
        await refused(writing, headers, gzip.compress(b" " * 20_000_000))


class TestFraming:
    """Headers about the body's way that mean nothing to the application."""

    @pytest.mark.parametrize(
        "extra",
        [
            ("expect", "100-continue"), ("transfer-encoding", "chunked"), ("te", "trailers"),
            ("trailer", "x-checksum"), ("connection", "upgrade"), ("upgrade", "h2c"), ("content-md5", "x"),
            ("content-range", "bytes 0-1/9"), ("content-disposition", "attachment"),
            ("x-content-type-options", "sniff"), ("prefer", "return=minimal"), ("if-match", "*"),
        ],
        ids=lambda pair: pair[0],
    )  # fmt: skip
    async def test_ignored(self, writing: Writing, extra: tuple[str, str]) -> None:
        """The animal is added or changed."""
        assert (await writing.send_json(GOOD, extra)).status == writing.status

    async def test_a_body_on_head_and_options(self, shop: CheckedShop) -> None:
        """Is not read."""
        headers = [("authorization", f"Bearer {shop.key}"), ("content-length", "99999999")]
        assert (await shop.call("HEAD", "/v1/pets", headers, b"x" * 99)).status == 200
        assert (await shop.call("OPTIONS", "/v1/pets", headers, b"x" * 99)).status == 204
        assert (await shop.call("GET", "/v1/pets", headers, b"x" * 99)).status == 200
