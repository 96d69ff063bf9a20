"""One try to send a webhook: what is sent, what counts, and what a receiver can't do to the sender."""

from __future__ import annotations

import asyncio
import gzip
import os
import resource
import socket
import struct

import pytest
from structlog.testing import capture_logs

from petstore.background.sending import READ_MAX, Answer
from tests.background.kit import AT_HOME, OK, Names, closing, receiving, repeating, saying, sender

HEADERS = {"webhook-id": "evt_1", "webhook-signature": "v1,c2VjcmV0"}
BODY = b'{"type":"pet.created"}'


def answer(status: int, *headers: str, body: bytes = b"") -> bytes:
    """An answer with a body of known length."""
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


async def try_once(respond: object, *, deadline_seconds: float = 20.0) -> Answer:
    """What comes of one try to a receiver that answers so."""
    async with receiving(respond) as receiver, sender(deadline_seconds=deadline_seconds) as sends:  # type: ignore[arg-type]
        return await sends.send(receiver.url, BODY, HEADERS)


class TestRequest:
    """What a receiver gets."""

    async def test_it_is_a_plain_post(self) -> None:
        """The path and query byte for byte, and no header that invites compression or cookies."""
        async with receiving(saying(answer(200, "Set-Cookie: a=b"))) as receiver, sender() as sends:
            url = f"http://localhost:{receiver.port}/a/../b%2f~?x=%2C|&y="
            for _ in range(2):
                assert (await sends.send(url, BODY, HEADERS)).is_success
        assert receiver.requests[0] == receiver.requests[1]
        head, body = receiver.requests[0].split(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        assert first == "POST /a/../b%2f~?x=%2C|&y= HTTP/1.1"
        assert sorted(lines) == [
            "Accept-Encoding: identity",
            "Accept: */*",
            f"Content-Length: {len(BODY)}",
            "Content-Type: application/json",
            f"Host: localhost:{receiver.port}",
            "User-Agent: petstore-webhooks/1.2.3",
            "webhook-id: evt_1",
            "webhook-signature: v1,c2VjcmV0",
        ]
        assert body == BODY

    async def test_a_url_without_a_path_asks_for_the_root(self) -> None:
        """A request to a URL without a path asks for `/` (RFC 9112, section 3.2.1)."""
        async with receiving(saying(OK)) as receiver, sender() as sends:
            assert (await sends.send(f"http://127.0.0.1:{receiver.port}?a", BODY, HEADERS)).is_success
        assert receiver.requests[0].startswith(b"POST /?a HTTP/1.1\r\n")

    async def test_proxies_of_the_environment_are_not_used(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Only the setting chooses one."""
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, "http://127.0.0.1:9")
        assert (await try_once(saying(OK))).is_success


class TestAnswer:
    """What is known after a try."""

    @pytest.mark.parametrize(
        ("is_success", "statuses"),
        [(True, (200, 202, 204, 299)), (False, (300, 304, 400, 410, 429, 500, 599))],
    )
    async def test_the_status_decides(self, is_success: bool, statuses: tuple[int, ...]) -> None:
        """2xx is success, and an answer is not a fault."""
        for status in statuses:
            got = await try_once(saying(answer(status)))
            assert (got.status, got.fault, got.is_success) == (status, None, is_success)

    @pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
    async def test_a_redirect_is_not_followed(self, status: int) -> None:
        """The fault has the beginning of where it leads."""
        async with receiving(saying(OK)) as other:
            got = await try_once(saying(answer(status, f"Location: {other.url}?{'x' * 300}")))
        assert (got.status, got.is_success, other.connections) == (status, False, 0)
        assert got.fault is not None
        start = f"Redirects are not followed: this one leads to {other.url}?xxx"
        assert got.fault.startswith(start)
        assert got.fault.endswith("xxx….")
        assert len(got.fault) < len(start) + 200

    async def test_a_redirect_without_a_location_leads_to_nowhere(self) -> None:
        """The receiver's owner reads what was wrong with it."""
        got = await try_once(saying(answer(302)))
        assert got.fault == "Redirects are not followed: this one leads to nowhere."

    async def test_the_text_is_the_first_kib_and_printable(self) -> None:
        """What controls a terminal is escaped, what is no UTF-8 replaced."""
        got = await try_once(saying(answer(400, body=b"a\x1b[2J\xff\x00" + "ü".encode() * 600)))
        assert got.text.startswith("a\\x1b[2J\ufffd\\x00üüü")
        assert got.text.count("ü") == (1_024 - 7) // 2

    async def test_the_text_is_no_longer_than_the_contract_says(self) -> None:
        """Escapes are longer than what they stand for."""
        got = await try_once(saying(answer(500, body=bytes(1_024))))
        assert got.text == "\\x00" * 256

    @pytest.mark.parametrize(
        ("value", "seconds"),
        [
            ("120", 120),
            ("0", 0),
            ("Fri, 15 Jan 2027 08:01:00 GMT", 30),
            ("Friday, 15-Jan-27 08:01:00 GMT", 30),
            ("Fri, 15 Jan 2027 09:01:00 +0100", 30),
            ("Fri, 15 Jan 2027 08:01:00 -0000", 30),
            ("Fri, 15 Jan 2027 07:00:00 GMT", 0),
            ("1.5", None),
            ("-3", None),
            ("soon", None),
            ("9" * 30, None),
            ("Fri, 15 Jan 99999999999 08:00:00 GMT", None),
            ("", None),
        ],
    )
    async def test_retry_after_is_read_as_seconds_or_a_date(self, value: str, seconds: int | None) -> None:
        """Seconds, or a date; anything else is none."""
        got = await try_once(saying(answer(503, f"Retry-After: {value}")))
        assert (got.status, got.retry_after_seconds) == (503, seconds)

    async def test_interim_answers_are_passed_over(self) -> None:
        """1xx; but 101 ends the try, which asked for no other protocol."""
        interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
        assert (await try_once(saying(interim, answer(201)))).status == 201
        got = await try_once(saying(b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nxx"))
        assert (got.status, got.is_success) == (101, False)


class TestHostileBodies:
    """A 2xx is success whatever follows it; more than 64 KiB costs the connection."""

    @pytest.mark.parametrize(
        "first",
        [b"Transfer-Encoding: chunked", b"Content-Length: 999999999999", b"Connection: close"],
    )
    @pytest.mark.parametrize("status", [200, 500])
    async def test_an_endless_body(self, first: bytes, status: int) -> None:
        """Little of it is read, and then the connection is closed."""
        chunk = (b"1000\r\n" + b"x" * 4_096 + b"\r\n") * 256
        head = b"HTTP/1.1 %d X\r\n%b\r\n\r\n" % (status, first)
        async with receiving(repeating(head, chunk)) as receiver, sender() as sends:
            got = await sends.send(receiver.url, BODY, HEADERS)
            async with asyncio.timeout(20):
                await receiver.closed.wait()
        assert (got.status, got.fault) == (status, None)
        assert len(got.text) >= 1_024

    async def test_a_body_that_does_not_end_is_success_at_the_deadline(self) -> None:
        """The outcome is shown."""
        head = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nthe beginning"
        async with receiving(saying(head)) as receiver, sender(deadline_seconds=3.0) as sends:
            got = await sends.send(receiver.url, BODY, HEADERS)
            async with asyncio.timeout(20):
                await receiver.closed.wait()
        assert (got.is_success, got.fault, got.text) == (True, None, "the beginning")

    @pytest.mark.parametrize(
        "sent",
        [
            b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n0\r\nX: y\r\n",
        ],
    )
    async def test_a_broken_body_is_success(self, sent: bytes) -> None:
        """It ends too early, or is not as announced."""
        with capture_logs() as logged:
            got = await try_once(closing(sent))
        assert (got.is_success, got.fault, logged) == (True, None, [])

    async def test_a_flood_that_is_no_body_is_success(self) -> None:
        """The extension of a chunk has no end; not a byte of the chunk comes."""
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;"
        got = await try_once(repeating(head, b"x" * 4_096))
        assert (got.is_success, got.fault, got.text) == (True, None, "")

    async def test_a_compressed_body_stays_compressed(self) -> None:
        """Ten KiB are not made ten MB."""
        bomb = gzip.compress(bytes(10_000_000))
        assert len(bomb) < READ_MAX
        got = await try_once(saying(answer(200, "Content-Encoding: gzip", body=bomb)))
        assert got.is_success
        assert got.text.startswith("\\x1f")

    @pytest.mark.parametrize(("length", "connections"), [(READ_MAX - 1, 1), (5 * READ_MAX, 10)])
    async def test_a_body_within_the_bound_keeps_the_connection(self, length: int, connections: int) -> None:
        """Nothing is left on it; a longer one is not read to its end."""
        async with receiving(saying(answer(200, body=b"x" * length))) as receiver, sender() as sends:
            for _ in range(10):
                assert (await sends.send(receiver.url, BODY, HEADERS)).is_success
        assert receiver.connections == connections


class TestFaults:
    """No answer: a sentence says why."""

    async def test_a_port_where_nobody_listens_is_a_refused_connection(self) -> None:
        """A sentence says so, and the try counts as failed."""
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            async with sender() as sends:
                got = await sends.send(f"http://127.0.0.1:{taken.getsockname()[1]}/", BODY, HEADERS)
        assert got == Answer(None, "The connection was refused.")

    async def test_a_connection_broken_off_in_the_middle_is_a_reset(self) -> None:
        """A sentence says so, and the try counts as failed."""

        async def respond(writer: asyncio.StreamWriter) -> None:
            connection = writer.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()

        assert await try_once(respond) == Answer(None, "The connection was reset.")

    @pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\nX: y\r\n"])
    async def test_a_connection_closed_before_a_whole_head_has_no_answer(self, sent: bytes) -> None:
        """A sentence says so, and the try counts as failed."""
        assert await try_once(closing(sent)) == Answer(None, "The connection was closed without an answer.")

    @pytest.mark.parametrize(
        "sent",
        [
            b"SSH-2.0-OpenSSH_9.9\r\n",
            b"HTTP/1.1 two hundred\r\n\r\n",
            b"\x00\x01\x02\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nno number\r\n",
        ],
    )
    async def test_an_answer_of_another_protocol_is_a_fault_in_one_line(self, sent: bytes) -> None:
        """Another protocol, or a broken server; one line of what the parser says."""
        got = await try_once(closing(sent))
        assert got.status is None
        assert got.fault is not None
        assert got.fault.startswith("The answer is not HTTP: ")
        assert got.fault.isprintable()
        assert len(got.fault) < 230

    @pytest.mark.parametrize(
        ("first", "then"),
        [
            (b"HTTP/1.1 200 OK\r\nX: ", b"x" * 4_096),
            (b"HTTP/1.1 200 ", b"x" * 4_096),
            (b"HTTP/1.1 200 OK\r\n", b"X-Header: some value\r\n"),
        ],
    )
    async def test_gigantic_heads_are_a_fault(self, first: bytes, then: bytes) -> None:
        """A line, the first one, or their number."""
        got = await try_once(repeating(first, then))
        assert got.status is None
        assert got.fault is not None
        assert got.fault.startswith("The answer is not HTTP: ")

    @pytest.mark.parametrize(
        "again",
        [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Hints\r\nLink: </a>\r\n\r\n", b"\r\n"],
    )
    async def test_a_flood_before_an_answer(self, again: bytes) -> None:
        """Interim answers without end would cost processor time up to the deadline."""
        got = await try_once(repeating(b"", again * 200))
        assert got == Answer(None, "The answer is not HTTP: More than 512 KiB received.")

    @pytest.mark.parametrize(
        "respond",
        [saying(b""), saying(b"HTTP/1.1 200 OK\r\n"), saying(b"HTTP/1.1 100 Continue\r\n\r\n")],
        ids=["silence", "half a head", "an interim answer"],
    )
    async def test_an_answer_after_the_deadline_is_a_fault(self, respond: object) -> None:
        """The deadline is for all of it."""
        assert await try_once(respond, deadline_seconds=0.3) == Answer(None, "No answer within 0.3 s.")

    async def test_an_unknown_name(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Names are not checked before."""
        Names(monkeypatch, {})
        async with sender() as sends:
            got = await sends.send("https://gone.example/", BODY, HEADERS)
        assert got == Answer(None, "The name gone.example is not known.")

    async def test_a_name_server_that_is_out_of_reach(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """That is not the receiver's fault."""

        def look_up(*_: object, **__: object) -> None:
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

        monkeypatch.setattr(socket, "getaddrinfo", look_up)
        async with sender() as sends:
            got = await sends.send("https://shop.example/", BODY, HEADERS)
        assert got == Answer(None, "The name shop.example could not be looked up.")

    async def test_a_url_that_may_not_be_called(self) -> None:
        """It was good under other settings."""
        async with sender() as sends:
            got = await sends.send("http://shop.example/", BODY, HEADERS)
        assert got == Answer(None, "The URL can't be called: expected https.")

    async def test_no_descriptor_left(self) -> None:
        """The receiver is not to blame: this process may open nothing more."""
        async with receiving(saying(OK)) as receiver, sender() as sends:
            limits = resource.getrlimit(resource.RLIMIT_NOFILE)
            free = os.dup(0)
            os.close(free)
            resource.setrlimit(resource.RLIMIT_NOFILE, (free, limits[1]))
            try:
                got = await sends.send(receiver.url, BODY, HEADERS)
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            assert got == Answer(None, "This service lacks resources: Too many open files.", is_ours=True)
            assert (await sends.send(receiver.url, BODY, HEADERS)).is_success

    async def test_a_fault_of_ours_shows_nothing(self) -> None:
        """A header that can't be sent: neither it nor the error is in the answer."""
        async with receiving(saying(OK)) as receiver, sender() as sends:
            got = await sends.send(receiver.url, BODY, {"webhook-signature": "v1,secret\r\nX: y"})
        assert got == Answer(None, "The try failed by a fault of this service.")


class TestConnections:
    """One pool for all receivers."""

    @pytest.mark.parametrize("is_kept", [True, False])
    async def test_each_new_connection_resolves_its_name_once(
        self, monkeypatch: pytest.MonkeyPatch, is_kept: bool
    ) -> None:
        """Nothing is cached, and a connection that is kept is used again."""
        names = Names(monkeypatch, {"localhost": ["127.0.0.1"]})
        respond = saying(OK) if is_kept else closing(answer(200, "Connection: close"))
        async with receiving(respond) as receiver, sender() as sends:
            for _ in range(3):
                assert (await sends.send(f"http://localhost:{receiver.port}/", BODY, HEADERS)).is_success
        connections = 1 if is_kept else 3
        assert (receiver.connections, names.asked) == (connections, ["localhost"] * connections)

    async def test_the_next_address_is_called_when_one_is_dead(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A name has several addresses."""
        Names(monkeypatch, {"localhost": ["127.9.9.9 127.0.0.1"]})
        async with receiving(saying(OK)) as receiver, sender() as sends:
            assert (await sends.send(f"http://localhost:{receiver.port}/", BODY, HEADERS)).is_success

    async def test_few_addresses_of_a_name_are_called(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A name with thousands would have this service call them all."""
        dead = " ".join(f"127.9.9.{number}" for number in range(1, 9))
        Names(monkeypatch, {"localhost": [f"{dead} 127.0.0.1"]})
        async with receiving(saying(OK)) as receiver, sender() as sends:
            got = await sends.send(f"http://localhost:{receiver.port}/", BODY, HEADERS)
        assert got == Answer(None, "The connection was refused.")

    async def test_many_at_once_have_a_connection_each(self) -> None:
        """Callers bound them: one that waits must not stop another."""
        everybody = asyncio.Barrier(150)

        async def respond(writer: asyncio.StreamWriter) -> None:
            await everybody.wait()
            writer.write(OK)

        async with receiving(respond) as receiver, sender() as sends:
            answers = await asyncio.gather(*(sends.send(receiver.url, BODY, HEADERS) for _ in range(150)))
        assert all(answer.is_success for answer in answers)

    async def test_a_cancellation_ends_the_connection_and_is_passed_on(self) -> None:
        """A stop waits for no receiver."""
        arrived = asyncio.Event()

        async def respond(_: asyncio.StreamWriter) -> None:
            arrived.set()

        async with receiving(respond) as receiver, sender() as sends:
            trying = asyncio.create_task(sends.send(receiver.url, BODY, HEADERS))
            await arrived.wait()
            trying.cancel()
            with pytest.raises(asyncio.CancelledError):
                await trying
            async with asyncio.timeout(20):
                await receiver.closed.wait()

    async def test_the_duration_is_measured_by_the_clock(self) -> None:
        """A try's duration is that of the whole try in milliseconds, by the steered clock."""
        async with sender(AT_HOME) as sends:
            clock = sends._clock

            async def respond(writer: asyncio.StreamWriter) -> None:
                clock.advance(1.5)  # type: ignore[attr-defined]
                writer.write(OK)

            async with receiving(respond) as receiver:
                assert (await sends.send(receiver.url, BODY, HEADERS)).duration_ms == 1_500
