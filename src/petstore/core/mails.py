"""Mails: what a notification looks like, for a reader and for programs.

List-Unsubscribe in one click: RFC 2369 and RFC 8058. Auto-Submitted keeps answering machines quiet: RFC 3834.
"""

from __future__ import annotations

import html
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec

from petstore.core.contacts import new_token
from petstore.core.durations import SECOND_MS
from petstore.core.notifications import BY_NAME, SAID_MAX

if TYPE_CHECKING:
    from email.headerregistry import Address
    from email.message import EmailMessage

SWITCHES = "/notifications"
_LINE_MAX = 998  # RFC 5322, section 2.1.1
_ENCODED_LINE_MAX = 76  # RFC 2045, section 6.7
# Characters of the service's address: a line has it, and the rest of a link.
BASE_MAX = 900


class MailServer(msgspec.Struct, frozen=True):
    """A server that takes mail. Without `is_tls` the connection begins plain, and STARTTLS encrypts it where
    the server offers that; a password is never sent without encryption."""

    host: str
    port: int
    is_tls: bool
    user: str = ""
    password: str = ""


class Mail(msgspec.Struct, frozen=True):
    """A mail of one kind to a contact. `of` is the account's or person's name.

    `said` are sentences, of the first SAID_MAX facts of `count`. `tries` have failed. `key` is never another
    mail's, and `due_ms` is when it is free again, should this process end.
    """

    id: int
    key: str
    contact_id: int
    address: str
    token: str
    of: str
    kind: str
    said: tuple[str, ...]
    count: int
    created_at_ms: int
    due_ms: int
    tries: int = 0


class Letterhead(msgspec.Struct, frozen=True):
    """Who sends mail, an address with a name or without, and where the service is for its readers."""

    sender: Address
    base: str

    def switches(self, token: str) -> str:
        """The page where a contact's notifications are switched."""
        return f"{self.base}{SWITCHES}/{token}"


def compose(mail: Mail, head: Letterhead, now_ms: int) -> EmailMessage:
    """The message to a contact."""
    kind = BY_NAME[mail.kind]
    title = kind.title.format(account=mail.of)
    said = [*mail.said, *([f"And {mail.count - SAID_MAX:,} more."] if mail.count > SAID_MAX else [])]
    whose = f"the account {mail.of}" if kind.to == "account" else mail.of
    switches = head.switches(mail.token)
    links = {f"{head.base}/{kind.page}": "Read more"} if kind.page else {}
    links[switches] = "Choose which mail you get"
    why = f"You get this mail because {mail.address} is a contact of {whose}."
    message = _message(head, mail.address, title, [*said, kind.advice, why], links, now_ms)
    message["Message-ID"] = f"<{mail.key}@{head.sender.domain}>"
    message["List-Unsubscribe"] = f"<{switches}?off={quote(mail.kind)}>"
    message["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    return message


def compose_test(address: str, head: Letterhead, now_ms: int) -> EmailMessage:
    """The message of a test."""
    said = ["Mail from this service arrives here.", "Somebody has asked for this test on the command line."]
    links = {head.base: "The service"}
    message = _message(head, address, "A test of the pet store's mail", said, links, now_ms)
    message["Message-ID"] = f"<{new_token()}@{head.sender.domain}>"
    return message


def _message(
    head: Letterhead, address: str, title: str, said: list[str], links: dict[str, str], now_ms: int
) -> EmailMessage:
    from email.message import EmailMessage  # most programs write no mail
    from email.policy import SMTP
    from email.utils import format_datetime

    # Servers need not take 8 bits (RFC 6152).
    message = EmailMessage(SMTP.clone(max_line_length=_ENCODED_LINE_MAX, cte_type="7bit"))
    message["From"] = head.sender
    message["To"] = address
    message["Subject"] = title
    message["Date"] = format_datetime(datetime.fromtimestamp(now_ms / SECOND_MS, UTC))
    message["Auto-Submitted"] = "auto-generated"
    paragraphs = [each for each in said if each]
    text = "\n\n".join([*paragraphs, *(f"{words}: {url}" for url, words in links.items())])
    message.set_content(f"{text}\n")
    shown = [
        *(html.escape(each) for each in paragraphs),
        *(f'<a href="{html.escape(url)}">{html.escape(words)}</a>' for url, words in links.items()),
    ]
    message.add_alternative(
        f"<!doctype html>\n<title>{html.escape(title)}</title>\n"
        + "\n".join(f"<p>{each}</p>" for each in shown),
        subtype="html",
    )
    # Python would write a longer field as encoded words, which no program reads as an address.
    message.policy = message.policy.clone(max_line_length=_LINE_MAX)
    return message
