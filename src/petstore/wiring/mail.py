"""Joins what sends mail with the settings: for the background process, and for a test on the command line."""

from __future__ import annotations

from petstore.background.mailing import Mailer, MailRefused, ServerTrouble
from petstore.config import Settings
from petstore.core.clock import Clock
from petstore.core.errors import ConfigurationError, OperatorError, Unavailable
from petstore.core.mails import Letterhead, MailServer, compose_test


def mail_of(settings: Settings) -> tuple[MailServer, Letterhead] | None:
    """The server that takes mail, and who it is from; None where no mail is sent."""
    if settings.smtp_url is None or settings.mail_from is None:
        return None
    mark = "[staging] " if settings.is_staging else ""
    return settings.smtp_url, Letterhead(settings.mail_from, settings.reached_at, mark)


async def send_test(settings: Settings, address: str, clock: Clock) -> str:
    """Send a mail at once; the name and port of the server that took it.

    Raises ConfigurationError for what no other try changes, OperatorError where the server refuses this mail,
    and Unavailable where trying again may help.
    """
    mail = mail_of(settings)
    if mail is None:
        raise ConfigurationError(
            "No mail is sent: set PETSTORE_SMTP_URL, such as smtps://user:password@mail.example.com, and"
            " PETSTORE_MAIL_FROM, such as petstore@example.com."
        )
    server, head = mail
    mailer = Mailer(server)
    try:
        async with mailer:
            await mailer.send(compose_test(address, head, clock.now_ms()))
    except (ServerTrouble, MailRefused) as error:
        fault = f"{mailer.where}: {str(error).rstrip('.')}."
        if not error.is_permanent:
            raise Unavailable(f"{fault} Try again; if that does not help, check PETSTORE_SMTP_URL.") from None
        if isinstance(error, MailRefused):
            raise OperatorError(f"{fault} Check the address, and whether the server sends to it.") from None
        raise ConfigurationError(f"{fault} Check PETSTORE_SMTP_URL and PETSTORE_MAIL_FROM.") from None
    return mailer.where
