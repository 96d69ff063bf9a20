"""Mails: what a notification looks like, for a reader and for programs.

List-Unsubscribe in one click: RFC 2369 and RFC 8058. Auto-Submitted keeps answering machines quiet: RFC 3834.
"""

from __future__ import annotations

import html
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec

from petstore.core.contacts import new_mail_token
from petstore.core.durations import MINUTE_MS, SECOND_MS
from petstore.core.notifications import BY_NAME, SAID_MAX

if TYPE_CHECKING:
    from email.headerregistry import Address
    from email.message import EmailMessage

SWITCHES = "/notifications"
LATE_MS = 10 * MINUTE_MS  # mail that waits longer is late: a service tries at least every five minutes
_LINE_MAX = 998  # RFC 5322, section 2.1.1
_ENCODED_LINE_MAX = 76  # RFC 2045, section 6.7
# Programs of mail drop style sheets. Without colors of its own a mail is as dark as its reader's program.
_HTML = """<!doctype html>
<html lang="en">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
"""
_PAGE = "margin: 0 auto; max-width: 600px; padding: 16px; font-family: sans-serif; line-height: 1.5"
_SMALL = "margin-top: 32px; border-top: 1px solid #8888; font-size: 14px; opacity: .8"
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
    """A mail of one kind to a contact. `owner_name` is the account's or person's name.

    `sentences` are about the first SAID_MAX of `count` entries. `tries` have failed. `key` is never
    another mail's, and `due_ms` is when it is free again, should this process end.
    """

    id: int
    key: str
    contact_id: int
    address: str
    token: str
    owner_name: str
    kind: str
    sentences: tuple[str, ...]
    count: int
    created_at_ms: int
    due_ms: int
    tries: int = 0


class Letterhead(msgspec.Struct, frozen=True):
    """Who sends mail, an address with a name or without, and where the service is for its readers.

    Subjects begin with `mark`.
    """

    sender: Address
    base: str
    mark: str = ""

    def switches(self, token: str) -> str:
        """The page where a contact's notifications are switched."""
        return f"{self.base}{SWITCHES}/{token}"


def compose(mail: Mail, head: Letterhead, now_ms: int) -> EmailMessage:
    """The message to a contact."""
    kind = BY_NAME[mail.kind]
    title = kind.heading(mail.owner_name, mail.count)
    said = [*mail.sentences, *([f"And {mail.count - SAID_MAX:,} more."] if mail.count > SAID_MAX else [])]
    if kind.advice:
        said.append(kind.advice)
    links = {f"{head.base}/{kind.page}": "Read more"} if kind.page else {}
    whose = f"the account {mail.owner_name}" if kind.to == "account" else mail.owner_name
    switches = head.switches(mail.token)
    small = _Part(
        [f"The Pet Store Service sends you this because {mail.address} is a contact of {whose}."],
        {switches: "Unsubscribe, or choose which mail you get"},
    )
    message = _message(head, mail.address, title, [_Part(said, links), small], now_ms)
    message["Message-ID"] = f"<{mail.key}@{head.sender.domain}>"
    message["List-Unsubscribe"] = f"<{switches}?off={quote(mail.kind)}>"
    message["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    return message


def compose_test(address: str, head: Letterhead, now_ms: int) -> EmailMessage:
    """The message of a test."""
    said = ["This is a test. Mail from the Pet Store Service arrives."]
    links = {head.base: "Open the service"}
    message = _message(head, address, "Test mail from the Pet Store Service", [_Part(said, links)], now_ms)
    message["Message-ID"] = f"<{new_mail_token()}@{head.sender.domain}>"
    return message


class _Part(msgspec.Struct, frozen=True):
    """Paragraphs, then links with their words."""

    paragraphs: list[str]
    links: dict[str, str]

    def text(self) -> str:
        return "\n\n".join([*self.paragraphs, *(f"{words}: {url}" for url, words in self.links.items())])

    def html(self, style: str) -> str:
        shown = [
            *(html.escape(each) for each in self.paragraphs),
            *(f'<a href="{html.escape(url)}">{html.escape(words)}</a>' for url, words in self.links.items()),
        ]
        return "\n".join([f'<div style="{style}">', *(f"<p>{each}</p>" for each in shown), "</div>\n"])


def _message(head: Letterhead, address: str, title: str, parts: list[_Part], now_ms: int) -> EmailMessage:
    """The first part says the matter, and the others are small."""
    from email.message import EmailMessage  # most programs write no mail
    from email.policy import SMTP
    from email.utils import format_datetime

    # Servers need not take 8 bits (RFC 6152).
    message = EmailMessage(SMTP.clone(max_line_length=_ENCODED_LINE_MAX, cte_type="7bit"))
    message["From"] = head.sender
    message["To"] = address
    message["Subject"] = head.mark + title
    message["Date"] = format_datetime(datetime.fromtimestamp(now_ms / SECOND_MS, UTC))
    message["Auto-Submitted"] = "auto-generated"
    message.set_content("\n\n".join(part.text() for part in parts) + "\n")
    shown = html.escape(title)
    matter, *small = parts
    message.add_alternative(
        f"{_HTML}<title>{shown}</title>\n"
        f'<div style="{_PAGE}">\n<h1 style="font-size: 20px; line-height: 1.3">{shown}</h1>\n'
        + matter.html("font-size: 16px")
        + "".join(part.html(_SMALL) for part in small)
        + "</div>\n",
        subtype="html",
    )
    # Python would write a longer field as encoded words, which no program reads as an address.
    message.policy = message.policy.clone(max_line_length=_LINE_MAX)
    return message
