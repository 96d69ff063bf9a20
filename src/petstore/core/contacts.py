"""Contacts: email addresses of an account or a person, and which notifications each does not take."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from typing import Literal

import msgspec

from petstore.core.errors import Invalid

# How many one account, or one person, may have.
CONTACTS_MAX = 10
ADDRESS_MAX = 254  # RFC 5321, section 4.5.3.1.3, without its brackets
_TOKEN_BYTES = 16
# What HTML takes in a field for an address, in ASCII: each server can send to it. But for `=?`, which
# begins an encoded word (RFC 2047): decoded it is another address.
_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_ADDRESS = re.compile(
    rf"(?!.*=\?)[A-Za-z0-9.!#$%&'*+/=?^_`{{|}}~-]{{1,64}}@{_LABEL}(?:\.{_LABEL})*", re.ASCII
)

Subject = Literal["account", "person"]


class Contact(msgspec.Struct, frozen=True):
    """An address of an account or a person. Who knows the `token` may switch its notifications.

    `off`: the kinds that it does not take. `fault`: why the last mail did not arrive.
    """

    id: int
    subject: Subject
    subject_id: int
    address: str
    off: tuple[str, ...]
    token: str
    created_at_ms: int
    fault: str | None = None
    fault_at_ms: int | None = None

    @property
    def journaled(self) -> str:
        """The address in the journal, which every viewer reads; of a person's only what tells it apart."""
        local, _, host = self.address.rpartition("@")
        return self.address if self.subject == "account" else f"{local[0]}…@{host}"


def is_address(text: str) -> bool:
    """Whether mail can be sent to it."""
    return len(text) <= ADDRESS_MAX and _ADDRESS.fullmatch(text) is not None


def address_fault(text: str) -> str | None:
    """The fault of an address, as a phrase for a message."""
    return None if is_address(text) else "expected an email address such as anna@example.com"


def check_address(text: str) -> None:
    """Raise Invalid unless mail can be sent to it."""
    if not is_address(text):
        raise Invalid("address", f"{text!r} is not an email address. Write one such as anna@example.com.")


def is_same(address: str, other: str) -> bool:
    """Whether mail to both comes to one place: servers in use take any case of a name (RFC 5321 lets them
    tell it apart)."""
    return address.lower() == other.lower()


def check_addresses(addresses: Sequence[str]) -> None:
    """Raise Invalid unless they can be the first contacts of an account or a person."""
    for address in addresses:
        check_address(address)
        if sum(is_same(address, other) for other in addresses) > 1:
            raise Invalid("address", f"{address} is there twice.")
    if len(addresses) > CONTACTS_MAX:
        raise Invalid("address", f"at most {CONTACTS_MAX} contacts, got {len(addresses)}.")


def new_mail_token() -> str:
    """128 random bits, for the links of a contact or the identifier of a mail."""
    return secrets.token_urlsafe(_TOKEN_BYTES)
