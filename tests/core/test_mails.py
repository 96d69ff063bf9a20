"""Mails: what a notification is, as the bytes that are sent, for a reader and for programs."""

from __future__ import annotations

from collections.abc import Callable
from email import message_from_bytes, policy
from email.headerregistry import Address
from email.message import EmailMessage
from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from petstore import config
from petstore.core.accounts import check_account_name
from petstore.core.contacts import check_address, is_address
from petstore.core.errors import ConfigurationError, Invalid
from petstore.core.mails import BASE_MAX, Letterhead, Mail, compose
from petstore.core.notifications import BY_NAME, KINDS, SAID_MAX, NotificationKind
from petstore.core.people import check_person_name
from tests.support.cases import every_case

NOW_MS = 1_800_000_000_000
TOKEN = "Qx3-_" + "k" * 17
BASE = "https://shop.example/pets"
UNSUBSCRIBE = "Unsubscribe, or choose which mail you get"
SENDER = Address("Pet Store", "mail", "shop.example")
NAMES = [
    *("From", "To", "Subject", "Date", "Auto-Submitted", "MIME-Version", "Content-Type", "Message-ID"),
    *("List-Unsubscribe", "List-Unsubscribe-Post"),
]
of_each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


def mail_of(
    kind: NotificationKind = KINDS[0],
    *,
    of: str = "acme",
    address: str = "anna@example.com",
    said: tuple[str, ...] = ("The key expires.",),
    count: int = 1,
) -> Mail:
    return Mail(7, "0f1e2d3c4b5a.7", 1, address, TOKEN, of, kind.name, said, count, NOW_MS, NOW_MS)


def sent(mail: Mail, *, base: str = BASE) -> bytes:
    """The bytes of a mail, as the mailer sends them."""
    return compose(mail, Letterhead(SENDER, base), NOW_MS).as_bytes()


def read(content: bytes) -> EmailMessage:
    """What the reader's program makes of the bytes."""
    message = message_from_bytes(content, policy=policy.default)
    assert isinstance(message, EmailMessage)
    return message


def part_of(message: EmailMessage, kind: str) -> str:
    part = message.get_body((kind,))
    assert part is not None
    return str(part.get_content()).replace("\r\n", "\n")


class _Paragraphs(HTMLParser):
    """The paragraphs of a page as plain text has them: a link is its words and its address."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.title = self.heading = ""
        self._in, self._address = "", ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ("html", "meta", "title", "div", "h1", "p", "a")
        if tag == "p":
            self.found.append("")
        if tag == "a":
            ((name, address),) = attrs
            assert name == "href"
            self._address = f": {address}"
        elif tag in ("title", "h1", "p"):
            self._in = tag

    def handle_endtag(self, tag: str) -> None:
        if tag == "a":
            self.found[-1] += self._address
        elif tag == self._in:
            self._in = ""

    def handle_data(self, data: str) -> None:
        if self._in == "title":
            self.title += data
        elif self._in == "h1":
            self.heading += data
        elif self._in == "p":
            self.found[-1] += data
        else:
            assert not data.strip()


class TestParts:
    """What a person reads."""

    @of_each_kind
    def test_both_say_the_same(self, kind: NotificationKind) -> None:
        """Plain text and HTML have the same paragraphs and links in one order: the facts, what to do, who
        sends it and why, and the page where it ends."""
        said = ("The key <b>pets_live_…</b> & more.", 'It\'s "that".')
        message = read(sent(mail_of(kind, said=said, count=len(said))))
        paragraphs = _Paragraphs(part_of(message, "html"))
        text = part_of(message, "plain").rstrip("\n").split("\n\n")
        assert paragraphs.found == text
        assert paragraphs.title == paragraphs.heading == message["Subject"] == kind.heading("acme", 2)
        assert text[:2] == list(said)
        assert (kind.advice in text) == bool(kind.advice)
        whose = "the account acme" if kind.to == "account" else "acme"
        why = f"The Pet Store Service sends you this because anna@example.com is a contact of {whose}."
        last = f"{UNSUBSCRIBE}: {BASE}/notifications/{TOKEN}"
        assert text[-2:] == [why, last]
        assert message.get_content_type() == "multipart/alternative"

    @pytest.mark.parametrize(
        ("kind", "one", "several"),
        [
            ("key.expiring", "acme: a key expires soon", "acme: keys expire soon"),
            ("order.created", "New order", "1,234 new orders"),
            ("account.suspended", "acme: the account was suspended", "acme: the account was suspended"),
        ],
    )
    def test_a_subject_of_one_fact_or_several(self, kind: str, one: str, several: str) -> None:
        """It is in the singular for one, and for several in the plural."""
        subjects = [read(sent(mail_of(BY_NAME[kind], count=count)))["Subject"] for count in (1, 1_234)]
        assert subjects == [one, several]

    def test_facts_beyond_the_first_are_counted(self) -> None:
        """A mail has a bounded length."""
        said = tuple(f"Fact {number}." for number in range(SAID_MAX))
        text = part_of(read(sent(mail_of(said=said, count=SAID_MAX + 1_234))), "plain")
        assert text.split("\n\n")[: SAID_MAX + 1] == [*said, "And 1,234 more."]

    @given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=80))
    @example("<script>alert(1)</script>")
    @example('"><img src=x onerror=alert(1)>')
    @example("{kind} %s &lt; é 🐈")
    def test_what_is_said_is_text(self, said: str) -> None:
        """A name of an account, a list or a key is never markup, and arrives as it is; also where the server
        takes 7 bits alone. No line of encoded text is longer than RFC 2045 allows."""
        content = sent(mail_of(said=(said,)))
        assert content.isascii()
        assert max(map(len, content.partition(b"\r\n\r\n")[2].split(b"\r\n"))) <= 76
        message = read(content)
        paragraphs = _Paragraphs(part_of(message, "html"))
        assert paragraphs.found[0] == said
        assert part_of(message, "plain").startswith(f"{said}\n\n")


class TestFields:
    """What programs read."""

    @of_each_kind
    @pytest.mark.parametrize("base", [BASE, f"https://{'s' * (BASE_MAX - 8)}"], ids=["usual", "longest"])
    def test_one_click_is_one_line(self, kind: NotificationKind, base: str) -> None:
        """RFC 2369 and 8058: the address is whole in the bytes, unfolded and not encoded, however long the
        service's address is. No line is longer than RFC 5322 allows."""
        lines = sent(mail_of(kind), base=base).split(b"\r\n")
        assert [line for line in lines if line.startswith(b"List-Unsubscribe")] == [
            f"List-Unsubscribe: <{base}/notifications/{TOKEN}?off={kind.name}>".encode(),
            b"List-Unsubscribe-Post: List-Unsubscribe=One-Click",
        ]
        assert max(map(len, lines)) <= 998

    def test_a_service_whose_address_no_line_holds_does_not_start(self) -> None:
        """It does not where it sends mail; else the address may be longer."""
        settings = {"PETSTORE_BASE_URL": f"https://shop.example/{'s' * (BASE_MAX - 20)}/v1"}
        config.load(settings)
        settings |= {"PETSTORE_SMTP_URL": "smtp://127.0.0.1", "PETSTORE_MAIL_FROM": "mail@shop.example"}
        with pytest.raises(ConfigurationError, match="PETSTORE_BASE_URL of at most 900 characters"):
            config.load(settings)

    @of_each_kind
    @pytest.mark.parametrize(
        ("base_url", "base"),
        [("https://shop.example/pets/v1", BASE), ("https://shop.example/v1", "https://shop.example")],
    )
    def test_links_lead_below_the_base_address(
        self, kind: NotificationKind, base_url: str, base: str
    ) -> None:
        """They do below a proxy's prefix too: pages are beside /v1."""
        reached_at = config.load({"PETSTORE_BASE_URL": base_url}).reached_at
        text = part_of(read(sent(mail_of(kind), base=reached_at)), "plain")
        links = dict(line.split(": ") for line in text.splitlines() if ": https://" in line)
        expected = {"Read more": f"{base}/{kind.page}"} if kind.page else {}
        assert links == expected | {UNSUBSCRIBE: f"{base}/notifications/{TOKEN}"}

    def test_a_mail_has_an_id_its_time_and_is_no_automatic_answer(self) -> None:
        """The id repeats with the mail (RFC 3834 has the rest)."""
        message = read(sent(mail_of()))
        assert message.keys() == NAMES
        assert str(message["From"]) == "Pet Store <mail@shop.example>"
        assert str(message["To"]) == "anna@example.com"
        assert str(message["Message-ID"]) == "<0f1e2d3c4b5a.7@shop.example>"
        assert str(message["Auto-Submitted"]) == "auto-generated"
        assert message["Date"].datetime.timestamp() == NOW_MS / 1_000

    @given(st.from_regex(r"[A-Za-z0-9._-]{1,64}", fullmatch=True))
    @example("-" * 64)
    @example("..")
    def test_a_name_changes_its_own_field_alone(self, name: str) -> None:
        """It does, however odd the account's name is, and stands as it is written."""
        message = read(sent(mail_of(of=name)))
        assert message.keys() == NAMES
        assert str(message["Subject"]) == f"{name}: a key expires soon"

    @pytest.mark.parametrize("check", [check_account_name, check_person_name])
    @pytest.mark.parametrize(
        "name",
        [
            "acme\r\nBcc: eve@example.com", "acme\n", "acme\x0bBcc:", "acme\u2028Bcc:", "acme Bcc:", "\nacme",
            "=?utf-8?q?acme=0D=0ABcc:_eve=40example.com?=", "ácme",
        ],
    )  # fmt: skip
    def test_no_name_adds_a_field(self, check: Callable[[str], None], name: str) -> None:
        """Python would write one with the end of a line, or with an encoded word that has one, as two fields:
        nobody has such a name."""
        with pytest.raises(Invalid):
            check(name)


class TestAddresses:
    """A contact has an address."""

    @given(st.from_regex(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[a-z0-9-]{1,9}\.[a-z]{2}", fullmatch=True))
    @example("a" * 64 + "@" + ".".join(["b" * 61] * 3) + ".com")
    @example("{account}%s'=x=y?@example.com")
    @example("..a..@example.com")
    def test_mail_goes_to_what_was_said(self, address: str) -> None:
        """Each address that a contact can have is the one recipient, as it was written."""
        if not is_address(address):
            return
        content = sent(mail_of(address=address))
        assert f"\r\nTo: {address}\r\n".encode() in content
        message = read(content)
        assert message.keys() == NAMES
        assert [each.addr_spec for each in message["To"].addresses] == [address]

    @every_case(
        "address",
        [
            "=?utf-8?q?eve=40example.com=2C?=@example.com",
            "=?utf-8?q?a=0D=0ABcc=3A_eve?=@example.com",
            "a.=?utf-8?b?ZXZl?=@example.com",
            "anna@example.com\r\nBcc: eve@example.com", "anna@example.com\n",
            "anna@example.com,eve@example.com",
            "Anna <anna@example.com>", "anna @example.com", "anna@example..com", "anna", "@example.com", "",
            "ännä@example.com", "anna@exämple.com", "anna@[127.0.0.1]", "a@b@example.com",
            '"a b"@example.com',
            "a" * 65 + "@example.com", "a@" + ".".join(["b" * 63] * 4),
        ],
    )  # fmt: skip
    def test_what_is_no_address_is_no_contact(self, address: str) -> None:
        """A contact is one mail address, not several, nor what mail programs read as another (RFC 2047)."""
        with pytest.raises(Invalid, match="is not an email address"):
            check_address(address)
