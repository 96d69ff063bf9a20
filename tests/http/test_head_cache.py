"""Header lines that clients repeat, on one connection or many, are kept when they come again."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from petstore.http import head_cache as module
from petstore.http.exchange import Exchange
from petstore.http.head_cache import HeadCache
from tests.http.kit import HOST, TEXT, Later, Peer, get, ok, post

ONE, OTHER = b"X-Key: 1\r\n", b"X-Key: 2\r\n"
OFFER = b"Connection: Upgrade\r\nUpgrade: h2c\r\n"
LENGTH, CHUNKED = b"Content-Length: 4\r\n", b"Transfer-Encoding: chunked\r\n"
TARGETS = (
    b"/",
    b"/v1/pets?limit=1",
    b"/?a=%2F&b=c?",
    b"//a",
    b"/a#b",
    b"/a\x80",
    b"http://b/a",
    b"*",
    b"/a b",
    b"",
)
CLOSE, VERSION = b"Connection: close\r\n", b"X-Via: HTTP/1.1\r\n"
LINES = (b"", ONE, OTHER, OFFER, CLOSE, VERSION, b"X-Bad\r\n", b"Expect: 100-continue\r\n")
WHOLE = (
    st.builds(get, st.sampled_from(TARGETS), st.sampled_from(LINES))
    | st.builds(get, lines=st.sampled_from(LINES), method=st.sampled_from((b"HEAD", b"DELETE", b"FOO")))
    | st.builds(get, lines=st.sampled_from(LINES), version=st.sampled_from((b"1.0", b"2.0")))
)
BODIES = st.sampled_from(
    [
        *(post(LENGTH, body=b"\r\n\r\n"), get(b"/", LENGTH) + b"\r\n\r\n", get(b"/", LENGTH) + b"abcd"),
        *(get(b"/", CHUNKED) + b"0\r\n\r\n", get(b"/", CHUNKED) + b"1\r\na\r\n0\r\n\r\n"),
        *(get(b"/", LENGTH + OFFER) + b"abcd", b"\r\n" + get(), get() + b"\r\n", get(b"/1") + get(b"/2")),
        *(get(b"/", VERSION + ONE).replace(b"HTTP", b"RTSP", 1), b"GET /\n", get(b"/", CLOSE) + b"\r\n"),
    ]
)
_DATE = re.compile(rb"date: [^\r]*\r\n")  # of a refusal


class Log:
    """Keeps what an application can see, and answers when it is asked to."""

    def __init__(self) -> None:
        self.seen: list[tuple[object, ...]] = []
        self.waiting: list[Exchange] = []

    def __call__(self, exchange: Exchange) -> None:
        body, is_complete = exchange.take_body(), exchange.is_complete
        head = exchange.method, exchange.path, exchange.query, exchange.head.headers
        self.seen.append((*head, body, is_complete, exchange.client, exchange.keeps_alive))
        self.waiting.append(exchange)


def kept(*requests: bytes) -> HeadCache:
    """What a server keeps to which each of them has come twice, on other connections."""
    cache = HeadCache()
    for request in requests * 2:
        peer = Peer(Later(), cache)
        peer.send(request)
        peer.lose()
    return cache


@given(st.lists(st.tuples(WHOLE | BODIES, st.booleans()), min_size=2, max_size=8))
async def test_keeping_the_lines_of_a_request_changes_no_answer(requests: list[tuple[bytes, bool]]) -> None:
    """A request in one read, whose lines may be kept, is answered as in two, which never are; at once or
    after the next ones."""
    at_once, in_two = Log(), Log()
    for application in (at_once, in_two):
        peer = Peer(application, kept(get(), *(request for request, _ in requests)))
        for request, is_answered in [(get(), True), *requests, (b"", True)]:
            # An unknown method comes in one piece.
            cut = application is in_two and not request.startswith(b"FOO")
            if not peer.transport.is_paused:
                peer.send(*filter(None, (request[:cut], request[cut:])))
            while is_answered and application.waiting:
                exchange = application.waiting.pop()
                exchange.answer(200, TEXT, exchange.path)
                application.seen.append((_DATE.sub(b"", await peer.answers()),))
            transport = peer.transport
            application.seen.append((transport.is_paused, transport.end, transport.has_ended))
        peer.lose()
    assert at_once.seen == in_two.seen


async def test_gives_the_same_head_to_the_application() -> None:
    """The head has what the application has kept in it, whatever the targets and the connections are; from
    the second one on, since the lines of most that come once never come again."""
    application, cache = Later(), HeadCache()
    for target in (b"/1", b"/2", b"/3?a=b", b"/3?a=b"):
        peer = Peer(application, cache)
        for _ in range(1 + (target == b"/3?a=b")):
            peer.send(get(target, ONE))
            application.last.head.made = application.last.head.made or target
            application.answer()
    assert [exchange.head.made for exchange in application.seen] == [b"/1", *[b"/2"] * 5]
    assert [exchange.query for exchange in application.seen] == [b"", b"", *[b"a=b"] * 4]


async def test_the_oldest_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded: by heads that are kept, and by what is remembered of those that came once."""
    monkeypatch.setattr(module, "_KEPT_MAX", 2)
    cache = kept(*(get(lines=b"X-Key: %d\r\n" % number) for number in (1, 1, 2, 2, 3, 3)))
    assert [dict(head.headers)[b"x-key"] for head in cache._heads.values()] == [b"2", b"3"]
    for number in range(10):
        Peer(Later(), cache).send(get(lines=b"X-Once: %d\r\n" % number))
        assert len(cache._seen) <= 2
    assert len(cache._heads) == 2


@pytest.mark.parametrize(
    "lines", [b"X-Long: %b\r\n" % (b"a" * 1_024), b"a: b\r\n" * 25], ids=["long", "many"]
)
async def test_large_ones_are_not_kept(lines: bytes) -> None:
    """The server keeps nothing of a head that is too large, so that it stays small."""
    cache = kept(get(lines=lines))
    assert (cache._heads, cache._seen) == ({}, set())


async def test_other_lines_are_others() -> None:
    """They are another key's, and the first one's after it."""
    application = Later()
    peer = Peer(application, kept(get(b"/", ONE), get(b"/", OTHER)))
    for line in (ONE, OTHER, ONE):
        peer.send(get(b"/", line))
        application.answer()
    assert [dict(exchange.head.headers)[b"x-key"] for exchange in application.seen] == [b"1", b"2", b"1"]
    assert application.seen[0].head is application.seen[2].head


@pytest.mark.parametrize("cut", [0, 2, 4], ids=["later", "in part", "with the head"])
@pytest.mark.parametrize("body", [b"\r\n\r\n", b"GET "])
async def test_a_body_is_read(application: Later, peer: Peer, body: bytes, cut: int) -> None:
    """A GET that had one has it again, however it arrives."""
    for _ in range(3):
        peer.send(get(b"/", LENGTH) + body[:cut], *filter(None, [body[cut:]]))
        assert application.last.take_body() == body
        application.answer()
    assert peer.written == ok(b"/") * 3


async def test_a_body_is_no_request() -> None:
    """A piece of it may look like the one before."""
    application = Later()
    peer = Peer(application, kept(get()))
    peer.send(get())
    application.answer()
    peer.send(post(b"Content-Length: %d\r\n" % (len(get()) + 2), body=b"a"), get(), b"z")
    assert application.last.take_body() == b"a" + get() + b"z"
    assert application.asked == [("GET", b"/"), ("POST", b"/")]


async def test_a_body_and_a_request_are_no_request() -> None:
    """They arrive together, and look like two requests; then two come."""
    application = Later()
    peer = Peer(application, kept(get()))
    body = get(b"/body")
    peer.send(post(b"Content-Length: %d\r\n" % len(body)), body + get(b"/1"))
    for requests in (b"", get(b"/2") + get(b"/1"), b""):
        application.answer()
        await peer.answers()
        peer.send(requests)
    assert [path for _, path in application.asked] == [b"/", b"/1", b"/2", b"/1"]


async def test_an_empty_line_may_come_before() -> None:
    """It leaves nothing unfinished: the connection closes at once after the answer."""
    peer = Peer(head_cache=kept(get()))
    peer.send(get(), b"\r\n", get())
    assert peer.written == ok(b"/") * 2
    peer.connection.close_if_idle()
    assert peer.transport.end == "close"


async def test_nothing_is_queued_behind_the_last_request() -> None:
    """It is read and dropped: so the end of the client is seen."""
    for last in (get(b"/", CLOSE), get(version=b"1.0")):
        application = Later()
        peer = Peer(application, kept(get()))
        peer.send(get())
        application.answer()
        peer.send(last, get(), get())
        assert not peer.transport.is_paused
        peer.end()
        await application.last.wait_for_disconnect()
        application.answer()
        assert peer.transport.end == "close"


async def test_a_request_of_another_protocol_is_none_before() -> None:
    """llhttp reads RTSP too, and a header line may end as a request line does."""
    application = Later()
    of_another = b"GET / RTSP/1.1\r\n" + ONE + VERSION + HOST + b"\r\n"
    peer = Peer(application, kept(of_another))
    for request in (of_another, get()):
        peer.send(request)
        application.answer()
    assert [len(exchange.head.headers) for exchange in application.seen] == [3, 1]
