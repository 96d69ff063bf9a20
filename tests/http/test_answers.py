"""Answers as they are written: lengths, chunks, and what the version of the client takes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from structlog.testing import capture_logs

from petstore.http.asgi import AsgiBridge, Receive, Send
from tests.http.kit import TEXT, Later, Peer, get, ok, post

HEAD = b"HTTP/1.1 200 OK\r\n"


class TestExchange:
    """What an application calls."""

    async def test_http_1_0_closes(self, application: Later, peer: Peer) -> None:
        """Whatever it asks for; and gets no chunks: the end of the connection is that of the body."""
        peer.send(get(b"/1", b"Connection: keep-alive\r\n", version=b"1.0") + get(b"/2"))
        application.last.begin(200, b"")
        for piece in (b"a", b"", b"bc"):
            await application.last.write(piece)
        application.last.end()
        assert await peer.answers() == HEAD + b"connection: close\r\n\r\nabc"
        assert peer.transport.has_ended
        assert application.asked == [("GET", b"/1")]

    async def test_http_1_1_gets_chunks_and_the_next_answer_after_the_last(
        self, application: Later, peer: Peer
    ) -> None:
        """A page whose length is not known keeps the connection."""
        peer.send(get(b"/1") + get(b"/2"))
        application.last.begin(200, b"")
        for piece in (b"a", b"", b"bcdefghijklmnopqr"):
            await application.last.write(piece)
        assert not application.last.is_answered
        application.last.end()
        chunks = b"1\r\na\r\n11\r\nbcdefghijklmnopqr\r\n0\r\n\r\n"
        assert await peer.answers() == HEAD + b"transfer-encoding: chunked\r\n\r\n" + chunks
        assert application.asked[-1] == ("GET", b"/2")

    async def test_a_known_length_needs_no_chunks_even_in_pieces(
        self, application: Later, peer: Peer
    ) -> None:
        """Content-Length says where the body ends."""
        peer.send(get())
        application.last.begin(200, b"", 3)
        await application.last.write(b"ab")
        await application.last.write(b"c")
        application.last.end()
        assert peer.written == HEAD + b"content-length: 3\r\n\r\nabc"

    async def test_head_has_the_length_and_no_body(self, application: Later, peer: Peer) -> None:
        """It holds for a whole answer, and for one in pieces."""
        peer.send(get(b"/12", method=b"HEAD"))
        application.answer()
        assert peer.written == HEAD + TEXT + b"content-length: 3\r\n\r\n"
        for length, line in ((3, b"content-length: 3\r\n"), (None, b"transfer-encoding: chunked\r\n")):
            peer.send(get(method=b"HEAD"))
            application.last.begin(200, b"", length)
            await application.last.write(b"abc")
            application.last.end()
            assert peer.written == HEAD + line + b"\r\n"

    @pytest.mark.parametrize("status", [204, 304])
    async def test_no_length_where_there_is_no_body(self, status: int) -> None:
        """RFC 9110, 8.6 and 15.4.5."""
        application = Later()
        peer = Peer(application)
        peer.send(get())
        application.last.answer(status, TEXT, None)
        assert peer.written.endswith(b"\r\n" + TEXT + b"\r\n")
        peer.send(get())
        application.last.begin(status, TEXT)
        application.last.end()
        assert peer.written.endswith(b"\r\n" + TEXT + b"\r\n")

    async def test_an_answer_that_ends_in_the_middle_resets(self, application: Later, peer: Peer) -> None:
        """The client notices it so."""
        peer.send(get())
        application.last.begin(200, b"")
        application.last.abort()
        assert peer.transport.end == "abort"


class TestAsgiBridge:
    """The pages are an application of ASGI."""

    @pytest.fixture
    def peer(self) -> Peer:
        """A client of some pages."""

        async def text(request: Request) -> Response:
            return PlainTextResponse(await request.body(), headers={"X-Path": request.url.path})

        async def value(request: Request) -> Response:
            return PlainTextResponse("a", headers={"x-value": "a\r\nevil: 1"})

        async def pieces(request: Request) -> Response:
            async def each() -> AsyncIterator[bytes]:
                yield b"ab"
                await asyncio.sleep(0)
                if "fail" in request.query_params:
                    raise RuntimeError
                yield b"c"

            return StreamingResponse(each())

        async def nothing(scope: object, receive: object, send: object) -> None:
            pass

        routes = [
            Route("/text%2F", text, methods=["GET", "POST"]),
            Route("/value", value),
            Route("/pieces", pieces),
            Route("/empty", lambda _: Response(status_code=204)),
        ]
        pages = Starlette(routes=routes)
        pages.mount("/nothing", nothing)
        return Peer(AsgiBridge(pages, lambda: [(b"date", b"today")]))

    async def test_request_and_answer(self, peer: Peer) -> None:
        """The body arrives, the path stays as it was sent, and the answer has its date and its length."""
        peer.send(post(b"Content-Length: 3\r\n", b"/text%2F"), b"a", b"bc")
        written = await peer.answers()
        head, _, body = written.partition(b"\r\n\r\n")
        assert body == b"abc"
        assert {*head.split(b"\r\n")} >= {b"x-path: /text%2F", b"date: today", b"content-length: 3"}
        assert head.count(b"content-length") == 1

    async def test_head_and_bodiless(self, peer: Peer) -> None:
        """HEAD says the length of GET; 204 has none."""
        peer.send(get(b"/text%2F", method=b"HEAD"))
        assert (await peer.answers()).endswith(b"content-length: 0\r\n\r\n")
        peer.send(get(b"/empty"))
        assert b"content-length" not in await peer.answers()

    async def test_an_asgi_body_of_unknown_length_goes_in_chunks(self, peer: Peer) -> None:
        """The client may be gone in between."""
        peer.send(get(b"/pieces"))
        assert (await peer.answers()).endswith(b"\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n")
        peer.send(get(b"/pieces"))
        peer.lose()
        assert await peer.answers() == b""

    @pytest.mark.parametrize("target", [b"/value", b"/pieces?fail", b"/nothing/"])
    async def test_an_asgi_application_that_fails_resets_the_connection(
        self, peer: Peer, target: bytes
    ) -> None:
        """A header of two lines, a failure in the middle, nothing: a reset, which the log explains."""
        with capture_logs() as lines:
            peer.send(get(target))
            assert b"evil" not in await peer.answers()
        assert peer.transport.end == "abort"
        assert [line["event"] for line in lines] == ["unexpected error"] * (target != b"/nothing/")

    async def test_a_client_that_goes_is_a_disconnect(self) -> None:
        """The application hears of a disconnect when a client goes, before its body is complete and after."""
        heard: list[str] = []

        async def application(scope: object, receive: Receive, send: object) -> None:
            while not heard or heard[-1] != "http.disconnect":
                heard.append((await receive())["type"])

        for framing in (b"", b"Content-Length: 5\r\n"):
            heard.clear()
            peer = Peer(AsgiBridge(application, lambda: [(b"date", b"today")]))
            peer.send(post(framing, b"/"))
            await peer.answers()
            peer.lose()
            await peer.answers()
            assert heard == ["http.request", "http.disconnect"][bool(framing) :]


async def test_a_body_that_a_page_leaves_is_discarded() -> None:
    """A page treats an unread body as /v1 does: the answer arrives."""

    async def application(scope: object, receive: object, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"/"})

    peer = Peer(AsgiBridge(application, lambda: [(b"content-type", b"text/plain")]))
    peer.send(post(b"Content-Length: 5\r\n", b"/"))
    assert await peer.answers() == ok(b"/")
    peer.send(b"12345" + post(b"Content-Length: 70000\r\n", b"/"))
    assert await peer.answers() == ok(b"/", closes=True)
