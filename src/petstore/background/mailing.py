"""Sends mail: one connection to the server for mails that follow each other, each try bounded in time."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import ssl
from email.message import EmailMessage

import aiosmtplib

from petstore.core.mails import MailServer
from petstore.core.printable import printable

_STEP_SECONDS = 20.0
# Servers look through a mail before they answer; a client that does not wait sends it twice.
_DATA_SECONDS = 80.0
_TRY_SECONDS = 120.0
_FAULT_CHARACTERS = 200
# Answers about the server, not about the mail: it shuts down (RFC 5321, section 3.8), or wants a password
# (RFC 4954, section 6).
_SERVER_CODES = (421, 530)
_NOT_LOCAL = 551
# RFC 3463: no such mailbox or host, or moved; RFC 7505: takes no mail. Others may be about this service: a
# relay does not know it, or nobody its sender (5.1.8).
_NO_SUCH = re.compile(r"5\.1\.(1|2|3|6|10)\b", re.ASCII)
_REFUSED = (
    (aiosmtplib.SMTPAuthenticationError, "user and password"),
    (aiosmtplib.SMTPSenderRefused, "the sender"),
)


class MailRefused(Exception):
    """The server did not take this mail, and may take another one. `is_permanent`: it says that another
    try will end the same. `is_unknown_recipient`: it will, since there is no such recipient."""

    def __init__(self, fault: str, *, is_unknown_recipient: bool, is_permanent: bool) -> None:
        super().__init__(fault)
        self.is_unknown_recipient, self.is_permanent = is_unknown_recipient, is_permanent


class ServerTrouble(Exception):
    """The server takes no mail at all: it can't be reached, or refuses this service. `is_permanent`: until
    somebody changes a setting, here or there."""

    def __init__(self, fault: str, *, is_permanent: bool) -> None:
        super().__init__(fault)
        self.is_permanent = is_permanent


class Mailer:
    """Sends by one server. The connection is kept until `close`."""

    def __init__(self, server: MailServer) -> None:
        self.where = f"{server.host}:{server.port}"
        self._server = server
        self._client: aiosmtplib.SMTP | None = None

    async def __aenter__(self) -> Mailer:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def send(self, message: EmailMessage) -> None:
        """The server has it when this returns. Raises MailRefused and ServerTrouble."""
        ((sender,), (recipient,)) = (message[name].addresses for name in ("From", "To"))
        is_under_way = False
        try:
            async with asyncio.timeout(_TRY_SECONDS):
                if self._client is None or not self._client.is_connected:  # servers close idle connections
                    self._client = await self._connect()
                client = self._client
                await client.mail(sender.addr_spec)
                await client.rcpt(recipient.addr_spec)
                is_under_way = True
                await client.data(message.as_bytes(), timeout=_DATA_SECONDS)
        except (aiosmtplib.SMTPException, OSError, ValueError, TimeoutError) as error:
            await self.close()
            raise _meaning(error, is_under_way) from error

    async def _connect(self) -> aiosmtplib.SMTP:
        server = self._server
        client = aiosmtplib.SMTP(
            hostname=server.host,
            port=server.port,
            use_tls=server.is_tls,
            start_tls=False,
            local_hostname=socket.gethostname() or "localhost",
            timeout=_STEP_SECONDS,
        )
        try:
            await client.connect()
            await client.ehlo()
            is_encrypted = server.is_tls
            if not is_encrypted and client.supports_extension("starttls"):
                await client.starttls()
                is_encrypted = True
            if server.user:
                if not is_encrypted:
                    raise ServerTrouble(
                        "It offers no encryption, so the password was not sent; try smtps:// in"
                        " PETSTORE_SMTP_URL.",
                        is_permanent=True,
                    )
                await client.login(server.user, server.password)
        except BaseException:
            _end(client)
            raise
        return client

    async def close(self) -> None:
        """End the connection; a farewell that takes long is left out."""
        client, self._client = self._client, None
        if client is None:
            return
        try:
            async with asyncio.timeout(1.0):
                await client.execute_command(b"QUIT")
        except (TimeoutError, aiosmtplib.SMTPException, OSError):
            pass
        finally:
            _end(client)


def _end(client: aiosmtplib.SMTP) -> None:
    """Close the connection at once: TLS would wait for the server's farewell, and a command ends before it
    comes."""
    if isinstance(client.transport, asyncio.WriteTransport):
        client.transport.abort()
    client.close()


def _meaning(error: Exception, is_under_way: bool) -> MailRefused | ServerTrouble:
    """Nobody knows whether a mail arrived whose content was under way: it counts as a try, else it would be
    sent every few minutes for as long as the server does not answer."""
    if isinstance(error, aiosmtplib.SMTPResponseException):
        refused = next((f"refused {what}:" for kind, what in _REFUSED if isinstance(error, kind)), "answered")
        fault, is_permanent = _shortened(f"It {refused} {error.code} {error.message}"), error.code >= 500
        is_recipient = isinstance(error, aiosmtplib.SMTPRecipientRefused)
        if error.code in _SERVER_CODES or not (is_recipient or is_under_way):
            return ServerTrouble(fault, is_permanent=is_permanent)
        is_unknown = error.code == _NOT_LOCAL or (is_permanent and _NO_SUCH.match(error.message) is not None)
        return MailRefused(fault, is_unknown_recipient=is_recipient and is_unknown, is_permanent=is_permanent)
    if is_under_way:
        return MailRefused(_fault(error), is_unknown_recipient=False, is_permanent=False)
    tls_fault = _tls_fault(error)
    return ServerTrouble(
        tls_fault or _fault(error), is_permanent=bool(tls_fault) or not isinstance(error, OSError)
    )


def _fault(error: Exception) -> str:
    """Why there was no answer."""
    cause = error.__cause__
    if isinstance(cause, aiosmtplib.SMTPReadTimeoutError):
        return "It sent no greeting in time. If it encrypts from the beginning, write smtps://."
    if isinstance(error, TimeoutError):
        return "It takes too long to answer."
    if isinstance(cause, OSError) and cause.errno:
        is_name = isinstance(cause, socket.gaierror)
        return f"It can't be reached: {cause.strerror if is_name else os.strerror(cause.errno)}."
    return _shortened(str(error) or type(error).__name__)


def _tls_fault(error: Exception) -> str:
    """Why a connection is never encrypted, or nothing."""
    cause = error if isinstance(error, ssl.SSLError) else error.__cause__
    if isinstance(cause, ssl.SSLCertVerificationError):
        reason = cause.verify_message.rstrip(".")
        return f"Its certificate is not valid: {reason}; SSL_CERT_FILE names other authorities."
    if isinstance(cause, ssl.SSLError) and cause.reason == "WRONG_VERSION_NUMBER":
        return "It does not encrypt from the beginning. Try smtp://, which encrypts by STARTTLS."
    return ""


def _shortened(text: str) -> str:
    """What the log, PostgreSQL and a page take: a server may send any bytes."""
    return printable(" ".join(text.split()))[:_FAULT_CHARACTERS]
