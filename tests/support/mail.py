"""A mail server on loopback, in a thread of its own, that takes mail or answers as a test wants."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from tests.support.loops import serving_beside

# A log that a test before has opened would have this server's complaints among what a command prints.
logging.getLogger("mail.log").propagate = False

# In place of an answer: the connection ends.
CLOSE = ""
# Where a server is asked for its answer, and about what: nothing, or the recipient.
Step = str
CONNECT, RCPT, DATA = "CONNECT", "RCPT", "DATA"
Said = str | None
Answer = Callable[[Step, str], Said | Future[Said]]


def takes(_: Step, __: str) -> None:
    """The answer of a server that takes everything."""


def says(text: str, *, at: Step, to: str = "") -> Answer:
    """Says that at a step, of one recipient or all, and takes everything else."""
    return lambda step, address: text if step == at and to in ("", address) else None


class Held:
    """An answer that waits until a test gives it. `all` were asked for."""

    def __init__(self, *, at: Step = DATA) -> None:
        self.all: list[Future[Said]] = []
        self._at = at

    def __call__(self, step: Step, _: str) -> Future[Said] | None:
        if step != self._at:
            return None
        self.all.append(Future())
        return self.all[-1]

    def open(self, said: Said = None) -> None:
        """Give it to all that wait."""
        for each in self.all:
            if not each.done():
                each.set_result(said)


class MailServer:
    """What it has taken is in `messages`, and to whom in `envelopes`, before its sender hears of it.

    `answer` is asked at each step, in the server's thread: None takes it, a text such as `450 4.2.1 Later` is
    the answer, CLOSE ends the connection, and a future is waited for (at CONNECT: nothing is said at all).
    Mail whose sender goes away while its answer at DATA is waited for is taken.
    """

    def __init__(self, user: str, password: str) -> None:
        self.messages: list[EmailMessage] = []
        self.envelopes: list[list[str]] = []
        self.answer: Answer = takes
        self.connections = 0
        self.port = 0
        self.logins: list[str] = []
        self.is_implicit = False
        self.user, self.password = user, password

    @property
    def url(self) -> str:
        """The value of PETSTORE_SMTP_URL."""
        login = f"{self.user}:{self.password}@" if self.user else ""
        return f"smtp{'s' if self.is_implicit else ''}://{login}127.0.0.1:{self.port}"

    def taken(self) -> list[EmailMessage]:
        """What came since the last call."""
        count = len(self.messages)
        found = self.messages[:count]
        del self.messages[:count], self.envelopes[:count]
        return found

    def connect(self, tls: ssl.SSLContext | None) -> asyncio.Protocol:
        """The protocol of another connection."""
        self.connections += 1
        said = self.answer(CONNECT, "")
        if said is not None:
            return _Rebuff(said)
        options: dict[str, Any] = {}
        if self.user:
            must_seal = tls is not None and not self.is_implicit
            options = {"authenticator": self._log_in, "auth_require_tls": must_seal}
        plain = None if self.is_implicit else tls
        return SMTP(_Handler(self), hostname="mail.test", tls_context=plain, **options)

    def _log_in(self, _: object, __: object, ___: object, mechanism: str, login: Any) -> AuthResult:
        self.logins.append(mechanism)
        expected = LoginPassword(self.user.encode(), self.password.encode())
        return AuthResult(success=login == expected, handled=False)


class _Handler:
    def __init__(self, server: MailServer) -> None:
        self._server = server

    async def handle_RCPT(  # noqa: N802
        self, smtp: SMTP, session: Session, envelope: Envelope, address: str, _: list[str]
    ) -> str:
        if self._server.user and not session.authenticated:
            return "530 5.7.0 Authentication required"
        said = await self._ask(RCPT, address)
        if said is None:
            envelope.rcpt_tos.append(address)
        return _said(smtp, said)

    async def handle_DATA(  # noqa: N802
        self, smtp: SMTP, _: object, envelope: Envelope
    ) -> str:
        content, recipients = envelope.original_content, list(envelope.rcpt_tos)
        assert content is not None
        said: Said = None
        try:
            said = await self._ask(DATA, recipients[0])
        finally:
            if said is None:
                message = message_from_bytes(content, policy=default)
                assert isinstance(message, EmailMessage)
                self._server.envelopes.append(recipients)
                self._server.messages.append(message)
        return _said(smtp, said)

    async def _ask(self, step: Step, address: str) -> Said:
        said = self._server.answer(step, address)
        return await asyncio.wrap_future(said) if isinstance(said, Future) else said


def _said(smtp: SMTP, said: Said) -> str:
    if said == CLOSE:
        assert isinstance(smtp.transport, asyncio.Transport)
        smtp.transport.abort()
    return "250 OK" if said is None else said


class _Rebuff(asyncio.Protocol):
    """A connection that is ended, after an answer; or is never answered."""

    def __init__(self, said: str | Future[Said]) -> None:
        self._said = said

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        if isinstance(self._said, str):
            transport.write(f"{self._said}\r\n".encode(errors="surrogateescape") if self._said else b"")
            transport.close()


@contextmanager
def serving_mail(
    *, user: str = "", password: str = "", tls: ssl.SSLContext | None = None, is_implicit: bool = False
) -> Iterator[MailServer]:
    """A mail server for the length of a block: with STARTTLS, or TLS from the first byte; with a login."""
    server = MailServer(user, password)
    server.is_implicit = is_implicit

    async def begin(loop: asyncio.AbstractEventLoop) -> asyncio.Server:
        implicit = tls if is_implicit else None
        return await loop.create_server(lambda: server.connect(tls), "127.0.0.1", 0, ssl=implicit)

    with serving_beside(begin) as server.port:
        yield server
