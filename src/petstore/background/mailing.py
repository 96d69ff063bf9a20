"""Sends mail: one connection to the server for mails that follow each other, each try bounded in time."""

from __future__ import annotations

import asyncio
import socket
from email.message import EmailMessage
from types import TracebackType

import aiosmtplib

from petstore.core.mails import MailServer

_STEP_SECONDS = 20.0
_TRY_SECONDS = 120.0
_FAULT_CHARACTERS = 200


class MailRefused(Exception):
    """The server did not take this mail; another one it may. `is_final`: nor will it later, since there is no
    such recipient."""

    def __init__(self, fault: str, *, is_final: bool) -> None:
        super().__init__(fault)
        self.is_final = is_final


class ServerTrouble(Exception):
    """The server takes no mail at all: it can't be reached, or refuses this service."""


class Mailer:
    """Sends by one server. The connection is kept until `close`."""

    def __init__(self, server: MailServer) -> None:
        self._server = server
        self._client: aiosmtplib.SMTP | None = None

    async def __aenter__(self) -> Mailer:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def send(self, message: EmailMessage) -> None:
        """The server has it when this returns. Raises MailRefused and ServerTrouble."""
        try:
            async with asyncio.timeout(_TRY_SECONDS):
                await self._send(message)
        except aiosmtplib.SMTPRecipientsRefused as error:
            (refused,) = error.recipients
            is_final = refused.code >= 500 and "5.7." not in refused.message
            raise MailRefused(_said(refused.code, refused.message), is_final=is_final) from error
        except aiosmtplib.SMTPDataError as error:
            raise MailRefused(_said(error.code, error.message), is_final=False) from error
        except aiosmtplib.SMTPResponseException as error:
            await self.close()
            raise ServerTrouble(_said(error.code, error.message)) from error
        except TimeoutError as error:
            await self.close()
            raise ServerTrouble("It takes too long to answer.") from error
        except (aiosmtplib.SMTPException, OSError, ValueError) as error:
            await self.close()
            raise ServerTrouble(_shortened(str(error) or type(error).__name__)) from error

    async def _send(self, message: EmailMessage) -> None:
        if self._client is not None and not self._client.is_connected:
            self._client = None  # servers close idle connections
        if self._client is None:
            self._client = await self._connect()
        ((sender,), (recipient,)) = (message[name].addresses for name in ("From", "To"))
        # `send_message` would write the fields anew, and encode long ones.
        await self._client.sendmail(sender.addr_spec, [recipient.addr_spec], message.as_bytes())

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
            is_sealed = server.is_tls
            if not is_sealed and client.supports_extension("starttls"):
                await client.starttls()
                is_sealed = True
            if server.user:
                if not is_sealed:
                    raise ServerTrouble(
                        "It offers no encryption, so the password was not sent; try smtps:// in"
                        " PETSTORE_SMTP_URL."
                    )
                await client.login(server.user, server.password)
        except BaseException:
            client.close()
            raise
        return client

    async def close(self) -> None:
        """End the connection; a farewell that takes long is left out."""
        client, self._client = self._client, None
        if client is None:
            return
        try:
            async with asyncio.timeout(1.0):
                await client.quit()
        except (TimeoutError, aiosmtplib.SMTPException, OSError):
            pass
        finally:
            client.close()


def _said(code: int, message: str) -> str:
    return _shortened(f"It answered {code} {message}")


def _shortened(text: str) -> str:
    return " ".join(text.split())[:_FAULT_CHARACTERS]
