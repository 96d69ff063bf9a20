"""`petstore notifications`: the kinds of mail, what waits, and a test of the settings on a real server."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest

from petstore.core.notifications import KINDS
from petstore.wiring.administration import Store
from tests.cli.conftest import Cli
from tests.support.backends import execute_in_file
from tests.support.machine import make_certificate
from tests.support.mail import CLOSE, CONNECT, DATA, RCPT, MailServer, says, serving_mail

TO = "eva@shop.example"
LOGIN: dict[str, Any] = {"user": "petstore", "password": "secret"}


def test_every_kind_is_listed_with_its_contacts(cli: Cli) -> None:
    """The list says whose contacts take it; neither settings nor a database are needed."""
    found = cli.json("notifications", "kinds")
    assert [kind["name"] for kind in found] == [kind.name for kind in KINDS]
    assert found[-1] == {
        "name": "list.finished",
        "to": "person",
        "about": "A stock list was checked, stored or refused.",
    }


class TestList:
    def test_each_waiting_mail_is_listed_with_its_age(self, shop: Cli) -> None:
        """Whom it is for, how many facts it has, when it is due, and how old it is."""
        assert shop.run("notifications", "list").stderr == "No mail waits.\n"
        shop.ok("accounts", "contacts", "shop", TO, "--add")

        async def happen(store: Store) -> None:
            await store.notifications.gather()
            for _ in range(2):
                await store.accounts.suspend("shop", "cli:tests")
                await store.accounts.resume("shop", "cli:tests")
            await store.notifications.gather()

        shop.with_store(happen)
        shop.clock.advance(200)
        assert shop.json("notifications", "list") == [
            {
                "id": 1,
                "kind": "account.suspended",
                "address": TO,
                "of": "shop",
                "facts": 2,
                "tries": 0,
                "createdAt": "2027-01-15T08:00:30.000Z",
                "dueAt": "2027-01-15T08:01:30.000Z",
            }
        ]
        result = shop.run("notifications", "list")
        heading, line = result.stdout.splitlines()
        assert heading.split() == ["ID", "KIND", "TO", "OF", "FACTS", "TRIES", "DUE", "AGE"]
        assert line.split()[1:] == [
            "account.suspended",
            TO,
            "shop",
            "2",
            "0",
            "2027-01-15",
            "08:01:30Z",
            "3m",
        ]
        assert result.stderr == ""

    def test_an_age_is_in_whole_units_and_never_negative(self, shop: Cli) -> None:
        """A mail's age is in whole units, and a clock that was set back makes no negative one. Ten minutes
        after a mail was due standard error says where the reason is."""
        fill(shop, 1)
        ages = ((-5, "1s"), (59, "59s"), (599, "9m"), (601, "10m"), (7_199, "1h"), (180_000, "2d"))
        began_ms = shop.clock.ms
        for seconds, age in ages:
            shop.clock.ms = began_ms + seconds * 1_000
            shown = shop.run("notifications", "list")
            assert shown.stdout.split()[-1] == age
            assert shown.stderr.startswith("Mail is late") == (seconds > 600)

    def test_a_hundred_of_many(self, shop: Cli) -> None:
        """The list has the hundred mails that are due first; standard error says how many more there are."""
        fill(shop, 1_103)
        result = shop.run("notifications", "list", "--json")
        assert (result.stdout.count('"id"'), result.stderr) == (100, "There are 1,003 more.\n")
        assert shop.ok("notifications", "list").splitlines()[1].split()[0] == "1103"


def fill(cli: Cli, count: int) -> None:
    """Add `count` mails that wait, made now; the last one is due first."""
    cli.ok("accounts", "contacts", "shop", TO, "--add")
    now_ms = cli.clock.now_ms()
    execute_in_file(
        Path(cli.database),
        f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})"
        " INSERT INTO mails (contact_id, kind, said, count, created_at_ms, due_ms)"
        f" SELECT 1, 'key.banned', '[]', 1, {now_ms}, {now_ms} - i FROM n",
    )


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """It signed itself, for this machine; its key stands beside it."""
    path = tmp_path_factory.mktemp("tls") / "mail.pem"
    make_certificate(path, path.with_suffix(".key"), "IP:127.0.0.1")
    return path


@pytest.fixture
def tls(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """A server's, which this machine trusts."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_suffix(".key"))
    return context


def sends_by(cli: Cli, server: MailServer, url: str = "") -> None:
    """The settings for a server."""
    cli.settings["PETSTORE_SMTP_URL"] = url or server.url
    cli.settings["PETSTORE_MAIL_FROM"] = "Pet store <petstore@example.com>"


class TestTest:
    """One mail by the settings, without a database."""

    def test_a_mail_arrives(self, cli: Cli) -> None:
        """One line says which server took it, and where to look."""
        with serving_mail() as server:
            sends_by(cli, server)
            where = f"127.0.0.1:{server.port}"
            line = cli.ok("notifications", "test", TO)
            assert line.startswith(f"{where} took the mail to {TO}. If it does not arrive, ")
            assert line.count("\n") == 1
            assert cli.json("notifications", "test", TO) == {"server": where, "address": TO}
        first, second = server.messages
        assert server.envelopes == [[TO], [TO]]
        assert (first["From"], first["Subject"]) == (
            "Pet store <petstore@example.com>",
            "Test mail from the Pet Store Service",
        )
        assert first["Message-ID"] != second["Message-ID"]
        assert first["Message-ID"].endswith("@example.com>")

    @pytest.mark.parametrize("is_implicit", [False, True])
    def test_a_mail_is_sent_encrypted_and_with_a_password(
        self, cli: Cli, tls: ssl.SSLContext, is_implicit: bool
    ) -> None:
        """It is encrypted by STARTTLS or from the first byte, and a password is sent."""
        with serving_mail(tls=tls, is_implicit=is_implicit, **LOGIN) as server:
            sends_by(cli, server)
            cli.ok("notifications", "test", TO)
        assert server.envelopes == [[TO]]

    @pytest.mark.parametrize(
        ("answer", "code", "text"),
        [
            (
                says("550 5.1.1 No such user", at=RCPT),
                1,
                "answered 550 5.1.1 No such user. Check the address",
            ),
            (says("550 5.7.1 Relaying denied", at=RCPT), 1, "and whether the server sends to it."),
            (says("554 5.6.0 Looks like spam", at=DATA), 1, "answered 554 5.6.0 Looks like spam."),
            (says("450 4.2.1 Mailbox busy", at=RCPT), 75, "answered 450 4.2.1 Mailbox busy. Try again;"),
            (says("451 4.3.0 Later", at=DATA), 75, "Try again;"),
            (says(CLOSE, at=DATA), 75, "Try again;"),
            (says("421 4.3.2 Shutting down", at=CONNECT), 75, "Try again;"),
            (says("554 5.7.1 Your address is on a list", at=CONNECT), 78, "Check PETSTORE_SMTP_URL and "),
        ],
    )
    def test_each_refusal_of_a_server_has_its_exit_code(
        self, cli: Cli, answer: Any, code: int, text: str
    ) -> None:
        """1: this mail. 75: until later. 78: everything by these settings."""
        with serving_mail() as server:
            server.answer = answer
            sends_by(cli, server)
            line = cli.refused(code, "notifications", "test", TO)
        assert line.startswith(f"petstore: 127.0.0.1:{server.port}: ")
        assert text in line

    def test_a_refused_password(self, cli: Cli, tls: ssl.SSLContext) -> None:
        """The line has the server's answer, and no password. Where none is given a setting is wrong, and the
        address is not."""
        with serving_mail(tls=tls, **LOGIN) as server:
            sends_by(cli, server, server.url.replace("secret", "another"))
            line = cli.refused(78, "notifications", "test", TO)
            sends_by(cli, server, server.url.replace("petstore:secret@", ""))
            assert "530 5.7.0 Authentication required" in cli.refused(78, "notifications", "test", TO)
        assert "It refused user and password: 535 5.7.8" in line
        assert "another" not in line

    def test_no_password_without_encryption(self, cli: Cli) -> None:
        """It says what to try."""
        with serving_mail(**LOGIN) as server:
            sends_by(cli, server)
            line = cli.refused(78, "notifications", "test", TO)
        assert "It offers no encryption, so the password was not sent; try smtps://" in line
        assert server.logins == []

    def test_a_certificate_that_nobody_trusts(
        self, cli: Cli, tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Nothing is sent; it says what names those that are trusted."""
        monkeypatch.delenv("SSL_CERT_FILE")
        with serving_mail(tls=tls) as server:
            sends_by(cli, server)
            line = cli.refused(78, "notifications", "test", TO)
        assert "Its certificate is not valid: self" in line
        assert "SSL_CERT_FILE names other authorities." in line
        assert server.messages == []

    def test_a_port_without_encryption_from_the_beginning(self, cli: Cli) -> None:
        """The usual mistake with port 587."""
        with serving_mail() as server:
            sends_by(cli, server, f"smtps://127.0.0.1:{server.port}")
            assert "Try smtp://, which encrypts by STARTTLS." in cli.refused(78, "notifications", "test", TO)

    def test_a_mail_server_that_does_not_listen_is_told(self, cli: Cli) -> None:
        """It may come back; else the line names the setting."""
        with serving_mail() as server:
            sends_by(cli, server)
        line = cli.refused(75, "notifications", "test", TO)
        assert line.startswith(f"petstore: 127.0.0.1:{server.port}: It can't be reached: Connection refused.")
        assert line.endswith("Try again; if that does not help, check PETSTORE_SMTP_URL.\n")

    def test_no_sender_is_set(self, cli: Cli) -> None:
        """It says what is missing; without a server, too, as sessions.txt shows."""
        cli.settings["PETSTORE_SMTP_URL"] = "smtp://127.0.0.1"
        assert "PETSTORE_SMTP_URL needs PETSTORE_MAIL_FROM" in cli.refused(78, "notifications", "test", TO)
