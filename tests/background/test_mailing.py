"""A mail on its way to a real server: encryption, logins, and what each refusal means."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from email.headerregistry import Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from petstore.background import mailing
from petstore.background.mailing import Mailer, MailRefused, ServerTrouble
from petstore.config.values import mail_server
from petstore.core.contacts import _ADDRESS, is_address
from petstore.core.mails import Letterhead, compose_test
from tests.background.conftest import Speaks
from tests.background.kit import Names
from tests.support.mail import CLOSE, CONNECT, DATA, RCPT, Held, MailServer, says, serving_mail, takes
from tests.support.waiting import until

HEAD = Letterhead(Address("Pet store", addr_spec="shop@example.com"), "https://shop.example")
MESSAGE = compose_test("anna@example.com", HEAD, 0)


@pytest.fixture
async def mailer(mail: MailServer) -> AsyncIterator[Mailer]:
    async with mailer_of(mail) as opened:
        yield opened


def mailer_of(mail: MailServer, host: str = "127.0.0.1") -> Mailer:
    server = mail_server(mail.url.replace("127.0.0.1", host))
    assert server is not None
    return Mailer(server)


async def test_it_arrives_as_it_was_written(mail: MailServer, mailer: Mailer) -> None:
    """Many by one connection; after one that the server ended, by another."""
    for _ in range(2):
        await mailer.send(MESSAGE)
    (first, second), connections = mail.taken(), mail.connections
    assert first.items() == second.items() == [(name, str(of)) for name, of in MESSAGE.items()]
    assert first.as_string().split() == MESSAGE.as_string().split()
    assert connections == 1
    mail.answer = says(CLOSE, at=RCPT)
    with pytest.raises(ServerTrouble):
        await mailer.send(MESSAGE)
    mail.answer = takes
    await mailer.send(MESSAGE)
    assert (len(mail.taken()), mail.connections) == (1, 2)


@given(st.from_regex(_ADDRESS, fullmatch=True).filter(is_address))
def test_every_contact_is_a_recipient(address: str) -> None:
    """A message makes of whatever is an address here the same recipient."""
    (recipient,) = compose_test(address, HEAD, 0)["To"].addresses
    assert recipient.addr_spec == address


@pytest.mark.parametrize(
    ("step", "said", "is_unknown_recipient"),
    [
        (RCPT, "450 4.2.1 Mailbox busy", False),
        (RCPT, "550 5.1.1 No such user at 10.5.7.1", True),
        (RCPT, "551 User not local", True),
        (RCPT, "556 5.1.10 Takes no mail", True),
        (RCPT, "550 5.7.1 Relaying denied", False),
        (RCPT, "550 relay not permitted", False),
        (RCPT, "550 5.1.8 Sender has no domain", False),
        (DATA, "451 4.3.0 Later", False),
        (DATA, "554 5.6.0 Looks like spam", False),
        (DATA, "OK: queued", False),
        (DATA, CLOSE, False),
    ],
)
async def test_one_mail_is_refused(
    mail: MailServer, mailer: Mailer, step: str, said: str, is_unknown_recipient: bool
) -> None:
    """The server takes the next one. Only that there is no such recipient is final. After an answer to its
    content without a code nobody knows whether it arrived."""
    mail.answer = says(said, at=step)
    with pytest.raises(MailRefused) as refused:
        await mailer.send(MESSAGE)
    assert refused.value.is_unknown_recipient is is_unknown_recipient
    assert said in str(refused.value)
    mail.answer = takes
    await mailer.send(MESSAGE)
    assert len(mail.taken()) == 1


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (CONNECT, CLOSE),
        (CONNECT, "421 4.3.2 Too many connections"),
        (CONNECT, "554 5.7.1 Your address is on a list"),
        (RCPT, "421 4.3.2 Shutting down"),
        (DATA, "421 4.3.2 Shutting down"),
        (RCPT, CLOSE),
    ],
)
async def test_the_server_takes_nothing(mail: MailServer, mailer: Mailer, step: str, said: str) -> None:
    """No fault of the mail. Once it takes some again, it takes this one."""
    mail.answer = says(said, at=step)
    with pytest.raises(ServerTrouble, match=said or "."):
        await mailer.send(MESSAGE)
    mail.answer = takes
    await mailer.send(MESSAGE)
    assert len(mail.taken()) == 1


@pytest.mark.parametrize("said", ["554 5.7.1 N\udce4", "554 a\x00b", "554 a\x1b[2J\u202eb"])
async def test_what_a_server_says_is_text(mail: MailServer, mailer: Mailer, said: str) -> None:
    """Whatever its bytes are: the log, a page and each database take it."""
    mail.answer = says(said, at=CONNECT)
    with pytest.raises(ServerTrouble) as trouble:
        await mailer.send(MESSAGE)
    assert str(trouble.value).isprintable()


@pytest.mark.parametrize(
    ("step", "error", "text"),
    [
        (
            CONNECT,
            ServerTrouble,
            "It sent no greeting in time. If it encrypts from the beginning, write smtps:",
        ),
        (RCPT, ServerTrouble, "takes too long to answer"),
        (DATA, MailRefused, "takes too long to answer"),
    ],
)
async def test_a_server_that_does_not_answer(
    mail: MailServer,
    mailer: Mailer,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    error: type[Exception],
    text: str,
) -> None:
    """Who waits for the answer to a mail's content does not know whether it arrived: it counts as a try."""
    monkeypatch.setattr(mailing, "_STEP_SECONDS", 0.1)
    monkeypatch.setattr(mailing, "_DATA_SECONDS", 0.1)
    mail.answer = Held(at=step)
    with pytest.raises(error, match=text):
        await mailer.send(MESSAGE)


@pytest.mark.parametrize("is_implicit", [False, True])
async def test_a_certificate_of_another(
    speaks: Speaks, monkeypatch: pytest.MonkeyPatch, is_implicit: bool
) -> None:
    """A server with another's certificate gets no password or mail, with STARTTLS or TLS from the start."""
    Names(monkeypatch, {"shop.example": ["127.0.0.1"]})
    with serving_mail(
        tls=speaks("elsewhere"), is_implicit=is_implicit, user="petstore", password="secret"
    ) as mail:
        async with mailer_of(mail, "shop.example") as mailer:
            with pytest.raises(ServerTrouble, match="ertificate"):
                await mailer.send(MESSAGE)
    assert (mail.messages, mail.logins) == ([], [])


async def test_a_cancelled_try_leaves_nothing_open(mail: MailServer, mailer: Mailer) -> None:
    """The next one begins anew."""
    held = mail.answer = Held(at=RCPT)
    sending = asyncio.create_task(mailer.send(MESSAGE))
    await until(lambda: bool(held.all))
    sending.cancel()
    await asyncio.wait([sending])
    await mailer.close()
    mail.answer = takes
    await mailer.send(MESSAGE)
    assert len(mail.taken()) == 1
