"""Settings: every row of the table with good and bad values, where they come from, what contradicts."""

from __future__ import annotations

from datetime import UTC, datetime
from email.headerregistry import Address
from ipaddress import ip_network
from pathlib import Path
from typing import Any, ClassVar
from zoneinfo import ZoneInfo

import pytest

from petstore import config
from petstore.core.errors import ConfigurationError
from petstore.core.mails import MailServer
from petstore.core.stages import Stage
from petstore.wiring.operations import guard_of
from tests.support.cases import every_case

LOOPBACK = (ip_network("127.0.0.0/8"), ip_network("::1/128"))
PUBLISHED = datetime(2030, 12, 5, tzinfo=UTC)

# name: (value of the default, [(text, value) that are taken], [(text, part of the message) that are not])
Row = tuple[Any, list[tuple[str, Any]], list[tuple[str, str]]]
ROWS: dict[str, Row] = {
    "database_url": (
        "sqlite:///petstore.db",
        [("sqlite:////var/lib/petstore.db", "sqlite:////var/lib/petstore.db")],
        [],  # the store reads it
    ),
    "host": (
        "127.0.0.1",
        [("0.0.0.0", "0.0.0.0"), ("::1", "::1"), ("localhost", "localhost")],
        [("", "such as 127.0.0.1"), ("a b", "such as"), ("[::1]", "such as"), ("1.2.3.4/8", "such as")],
    ),
    "port": (
        8080,
        [("1", 1), ("65535", 65_535)],
        [(text, "from 1 to 65535") for text in ("0", "65536", "-1", "+1", "1.0", "", "http", "\uff18")],
    ),
    "base_url": (
        "",
        [(url, url) for url in ("https://api.example.com/v1", "http://127.0.0.1:8080/shop/v1")],
        [
            ("https://api.example.com", "and /v1"),
            ("https://api.example.com/v1/", "and /v1"),
            ("ftp://api.example.com/v1", "and /v1"),
            ("https:///v1", "and /v1"),
            ("/v1", "and /v1"),
            ("https://api.example.com/v1?a=b", "without user, query"),
            ("https://api.example.com/v1#a", "without user, query"),
            ("https://api.example.com/v1#", "without user, query"),
            ("https://api.example.com:99999/v1", "perhaps a port"),
            ("https://:443/v1", "perhaps a port"),
            ("https://me:secret@api.example.com/v1", "without user"),
            ("https://büro.example/v1", "in ASCII"),
            ('https://a"b/v1', "in ASCII"),
            ("https://[/v1", "perhaps a port"),
            (f"https://{'a' * 1_000}/v1", "at most 1000 characters"),
        ],
    ),
    "stage": (None, [("staging", Stage.STAGING)], [("test", "one of production, staging")]),
    "staging_base_url": (
        "",
        [("https://staging.example.com/v1", "https://staging.example.com/v1")],
        [("https://staging.example.com", "and /v1")],
    ),
    "production_base_url": (
        "",
        [("https://api.example.com/v1", "https://api.example.com/v1")],
        [("https://api.example.com", "and /v1")],
    ),
    "environment": ("", [("test", "test"), ("live", "live")], [("prod", "one of live, test")]),
    "access_log": (True, [("on", True), ("off", False)], [("yes", "one of on, off"), ("", "one of on, off")]),
    "log_address": ("full", [("network", "network"), ("off", "off")], [("on", "one of full, network, off")]),
    "log_format": (
        "auto",
        [("json", "json"), ("text", "text")],
        [("xml", "one of auto, json, text"), ("JSON", "one of")],
    ),
    "log_level": (
        "info",
        [(level, level) for level in ("debug", "warning", "error")],
        [("verbose", "one of debug, info, warning, error"), ("INFO", "one of")],
    ),
    "trusted_proxies": (
        (),
        [("10.0.0.0/8, 2001:db8::/32", (ip_network("10.0.0.0/8"), ip_network("2001:db8::/32")))],
        [
            ("*", "would trust everybody"),
            ("0.0.0.0/0", "would trust everybody"),
            ("::/0", "would trust everybody"),
            ("10.0.0.1/8", "write 10.0.0.0/8"),
            ("2001:db8::1/32", "write 2001:db8::/32"),
            ("10.0.0.1/33", "neither an address nor a network"),
            ("proxy.example", "neither an address nor a network"),
        ],
    ),
    "console": ("auto", [("on", "on"), ("off", "off")], [("yes", "one of auto, on, off")]),
    "time_zone": (
        ZoneInfo("UTC"),
        [("Europe/Berlin", ZoneInfo("Europe/Berlin"))],
        [(text, "name of a time zone, such as Europe/Berlin") for text in ("", "Berlin", "UTC+1", "../UTC")],
    ),
    "ops_networks": (
        LOOPBACK,
        [("10.1.2.3", (ip_network("10.1.2.3/32"),)), ("", ())],
        [("*", "would trust everybody"), ("ops", "neither an address nor a network such as")],
    ),
    "ops_hosts": (
        frozenset(),
        [("Petstore.Internal, b.example", frozenset({"petstore.internal", "b.example"}))],
        [("petstore.internal:8080", "without a port"), ("https://a.example", "is not a name")],
    ),
    "cors_origins": (
        (),
        [
            ("https://a.example, http://localhost:3000", ("https://a.example", "http://localhost:3000")),
            ("https://[::1]:8443", ("https://[::1]:8443",)),
            ("HTTPS://Shop.Example", ("https://shop.example",)),
        ],
        [(text, "is not an origin") for text in ("*", "null", "a.example", "https://a.example/", "ftp://a")],
    ),
    "address_per_minute": (600, [("1", 1), ("1000000000", 10**9)], [("0", "from 1"), ("1e3", "from 1")]),
    "ban_minimum_rejections": (60, [("1", 1)], [("0", "from 1"), ("-5", "from 1"), ("9" * 19, "from 1")]),
    "ban_window": (300_000, [("10m", 600_000)], [("5", "is not a duration"), ("0s", "is not a duration")]),
    "ban_grace": (2_000, [("500ms", 500)], [("2", "is not a duration"), ("-2s", "is not a duration")]),
    "ban_durations": (
        (60_000, 300_000, 900_000, 3_600_000),
        [("1m", (60_000,)), ("1s,1s, 2s", (1_000, 1_000, 2_000))],
        [
            ("", "at least one"),
            (" , ", "at least one"),
            ("1m;2m", "not a duration"),
            ("5m,1m", "at least as long"),
        ],
    ),
    "ban_forgiven_after": (86_400_000, [("7d", 604_800_000)], [("never", "is not a duration")]),
    "removal_date": (
        PUBLISHED,
        [("2031-06-30", datetime(2031, 6, 30, tzinfo=UTC)), ("2030-12-05", PUBLISHED)],
        [
            ("2030-12-04", "never brought forward"),
            ("2030-13-01", "a date such as"),
            ("2031-02-29", "a date such as"),
            ("tomorrow", "a date such as"),
            ("", "a date such as"),
        ],
    ),
    "body_timeout": (
        10_000,
        [("250ms", 250), ("1m", 60_000)],
        [("61s", "at most 60s"), ("1h", "at most 60s"), ("10", "duration")],
    ),
    "answer_timeout": (
        30_000,
        [("500ms", 500), ("1h", 3_600_000)],
        [("499ms", "at least 500ms"), ("61m", "at most 1h"), ("0s", "duration")],
    ),
    "workers": (1, [], [("0", "from 1 to 256"), ("257", "from 1 to 256")]),
    "worker_timeout": (
        30_000,
        [("2s", 2_000), ("1h", 3_600_000)],
        [("1s", "at least 2s"), ("2h", "at most 1h")],
    ),
    "drain": (1_000, [("0s", 0), ("60s", 60_000)], [("61s", "at most 60s"), ("soon", "duration")]),
    "database_timeout": (5_000, [("500ms", 500), ("8s", 8_000)], [("9s", "at most 8s")]),
    "database_pool": (10, [("1", 1), ("1000", 1_000)], [("0", "from 1 to 1000")]),
    "database_prepared": (True, [("off", False)], [("no", "one of on, off")]),
    "valkey_url": ("", [], []),  # the limiter reads it
    "valkey_timeout": (
        300,
        [("20ms", 20), ("400ms", 400)],
        [("19ms", "at least 20ms"), ("401ms", "at most 400ms")],
    ),
    "limiter_outage": ("share", [("refuse", "refuse")], [("open", "one of share, refuse")]),
    "replicas": (1, [], [("0", "from 1 to 10000")]),
    "migrate": ("auto", [("on", "on"), ("off", "off")], [("yes", "auto, on, off"), ("", "auto")]),
    "write_queue": (1_024, [("1", 1), ("1000000", 10**6)], [("0", "from 1"), ("1000001", "from 1")]),
    "deliveries": (True, [("off", False)], [("no", "one of on, off")]),
    "webhook_networks": (
        (),
        [("10.1.0.0/16,fd00:1::/64", (ip_network("10.1.0.0/16"), ip_network("fd00:1::/64")))],
        [("intranet", "neither an address nor a network")],
    ),
    "webhook_proxy": (
        "",
        [("http://proxy:4750", "http://proxy:4750"), ("https://me:pw@[::1]/", "https://me:pw@[::1]/")],
        [
            (text, "expected the URL of a proxy, such as http://proxy.internal:4750.")
            for text in (
                *("proxy:4750", "socks5://proxy:1080", "http://", "http://proxy/path", "http://[proxy"),
                *("http://me:pass/word@proxy", "http://proxy:port", "http://proxy:99999"),
            )
        ],
    ),
    "secrets_key": (
        (),
        [
            (f"{'+' * 43}=", (f"{'-' * 43}=",)),
            (f"{'a/' * 21}A=, {'b' * 43}=", (f"{'a_' * 21}A=", f"{'b' * 43}=")),
        ],
        [
            (text, "expected base64 of 32 bytes")
            for text in ("secret", f"{'a' * 42}==", f"{'a' * 44}", "ü" * 44)
        ],
    ),
    "smtp_url": (
        None,
        [],  # no server without an address to send from: TestMail
        [
            (
                text,
                "expected a URL such as smtps://user:password@mail.example.com, or smtp://… with STARTTLS;"
                " the password in percent encoding, such as %2F for /.",
            )
            for text in (
                *("mail.example.com", "mail.example.com:587", "https://mail.example.com", "SMTP", "smtps:"),
                *("smtps://", "smtps://:465", "smtps://me:pw@", "smtp://[::1", "smtp://[not-ipv6]"),
                *("smtp://mail/inbox", "smtp://mail?tls=no", "smtp://mail#a", "smtps://me:pass/word@mail"),
                *("smtps://me:pass?word@mail", "smtps://me:pass#word@mail"),
                *("smtp://mail:0", "smtp://mail:99999", "smtp://mail:port"),
                *("smtps://me@mail", "smtps://me:@mail", "smtps://:pw@mail"),
                *("smtp://mail server", "smtp://ma\nil", "smtps://me:p w@mail", "smtp://büro.example"),
            )
        ],
    ),
    "mail_from": (
        None,
        [
            ("", None),
            ("petstore@example.com", Address("", addr_spec="petstore@example.com")),
            ("Pet store <petstore@example.com>", Address("Pet store", addr_spec="petstore@example.com")),
            ('"Pets, Inc." <a+b@example.com>', Address("Pets, Inc.", addr_spec="a+b@example.com")),
            ("Tierladen München <a@example.com>", Address("Tierladen München", addr_spec="a@example.com")),
        ],
        [
            (text, "expected one address such as petstore@example.com, or Pet store <…>.")
            for text in (
                *("petstore", "Pet store", "@example.com", "petstore@", "a b@example.com", "a@b@c"),
                *("<>", "Pet store <petstore>", "petstore@büro.example", "büro@example.com", "a@-b.example"),
                *(f"{'a' * 65}@example.com", f"a@{'b' * 64}.example", "Pet\x07store <a@example.com>"),
                *("a@example.com, b@example.com", "Pets, Inc. <a@example.com>"),
                *("Pets\r\nBcc: b@example.com <a@example.com>", "Pets <a@example.com> <b@example.com>"),
            )
        ],
    ),
    "journal_keep": (
        None,
        [("", None), ("30d", 2_592_000_000), ("720h", 2_592_000_000), ("10000d", 864_000_000_000)],
        [("29d", "at least 30d, or nothing"), ("1s", "at least 30d"), ("30", "is not a duration")],
    ),
    "busy_timeout": (
        5_000,
        [("1ms", 1)],
        [("2h", "at most 1h"), ("999999999d", "at most 1h"), ("x", "duration")],
    ),
    "key_rotation_overlap": (86_400_000, [("1h", 3_600_000)], [("0", "is not a duration")]),
}

FIELDS = {setting.name: setting.field for setting in config.TABLE}


def load(**settings: str) -> config.Settings:
    return config.load({f"PETSTORE_{name.upper()}": text for name, text in settings.items()})


def refusal(**settings: str) -> str:
    """What is said of settings that are refused; nothing where they are not."""
    try:
        load(**settings)
    except ConfigurationError as refused:
        return str(refused)
    return ""


def load_file(folder: Path, content: str | bytes, **settings: str) -> config.Settings:
    """The settings of a file with this content, which PETSTORE_CONFIG names."""
    file = folder / "settings.toml"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return load(config=str(file), **settings)


class TestTable:
    """One row for each setting, here as there."""

    def test_every_setting_has_a_row_here(self) -> None:
        """A new setting needs its good and bad values; `ROWS` above is where they go."""
        assert list(ROWS) == [setting.name for setting in config.TABLE]
        assert {setting.field for setting in config.TABLE} == set(config.Settings.__struct_fields__)

    def test_each_setting_has_its_default_where_nothing_is_set(self) -> None:
        """The table here is what the documents promise."""
        settings = config.load({})
        assert {name: getattr(settings, FIELDS[name]) for name in ROWS} == {
            name: row[0] for name, row in ROWS.items()
        }

    def test_each_good_value_is_taken_from_the_environment(self) -> None:
        """It is in force as the type that the setting has."""
        for name, (_, good, _) in ROWS.items():
            for text, value in good:
                assert getattr(load(**{name: text}), FIELDS[name]) == value, (name, text)

    def test_a_value_that_is_not(self) -> None:
        """One line that names the variable and says what is expected."""
        bad = [(name, *case) for name, (_, _, cases) in ROWS.items() for case in cases]
        for name, text, message in bad:
            line = refusal(**{name: text})
            assert message in line, (name, text)
            assert f"PETSTORE_{name.upper()}" in line
            assert "\n" not in line

    def test_each_row_says_what_it_is_for(self) -> None:
        """The summary stands in `petstore config` and in the documentation."""
        for setting in config.TABLE:
            assert setting.summary.endswith("."), setting.name
            assert setting.variable == f"PETSTORE_{setting.name.upper()}"


class TestNames:
    """A setting with a typing error in its name must not be ignored."""

    def test_an_unknown_variable_is_refused(self) -> None:
        """All of them are named; lower case is another name."""
        with pytest.raises(ConfigurationError, match="PETSTORE_HOTS, PETSTORE_PROT, PETSTORE_port: no"):
            config.load({"PETSTORE_PROT": "80", "PETSTORE_HOTS": "a", "PETSTORE_port": "80"})

    def test_a_refusal_of_an_unknown_name_names_the_file(self, tmp_path: Path) -> None:
        """An operator finds the line that is wrong."""
        with pytest.raises(
            ConfigurationError,
            match=r"settings\.toml: no such setting: prot; .* here in lower case without PETSTORE_\.",
        ):
            load_file(tmp_path, "prot = 80\nhost = '::1'\n")

    @pytest.mark.parametrize(
        ("content", "why"),
        [
            (b"port = ", "can't be read"),
            (b"port = 1\nport = 2\n", "can't be read"),
            (b"host = 'h\xe9'", "it is not UTF-8"),
            (b"host = " + b"[" * 5_000, "it is nested too deeply"),
            (b"host." + b"a." * 5_000 + b"a = 1", "host takes one value or a list; it is a table"),
            (b"workers = 0x" + b"f" * 5_000, "workers is too large a number"),
            (b"workers = [[1], [{a = 2}]]", "workers takes one value or a list; it is a table"),
        ],
        ids=["cut", "twice", "latin-1", "nested", "dotted", "large", "table in a list"],
    )
    def test_a_file_that_nobody_can_read_is_refused(self, tmp_path: Path, content: bytes, why: str) -> None:
        """One line with the file's name, whatever is in it."""
        with pytest.raises(ConfigurationError, match=why) as refused:
            load_file(tmp_path, content)
        assert "settings.toml" in str(refused.value)

    def test_only_a_secret_can_be_read_from_a_file_of_its_own(self, tmp_path: Path) -> None:
        """No other setting has a variable that ends with _FILE."""
        file = tmp_path / "port"
        file.write_text("80")
        with pytest.raises(ConfigurationError, match="PETSTORE_PORT_FILE: no such setting"):
            load(port_file=str(file))

    def test_the_environment_is_read_by_prefix(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Other programs' variables are none of our business, nor those of our clients."""
        monkeypatch.setenv("PETSTORE_PORT", "9000")
        for name in ("PORT", "PETSTORE_URL", "PETSTORE_KEY"):
            monkeypatch.setenv(name, "9001")
        assert config.read_environment()["PETSTORE_PORT"] == "9000"
        assert config.read_environment().keys() & {"PORT", "PETSTORE_URL", "PETSTORE_KEY"} == set()
        assert config.load().port == 9_000


class TestFile:
    """A TOML file with lower-case names, named by PETSTORE_CONFIG."""

    def test_a_byte_order_mark_is_no_part_of_it(self, tmp_path: Path) -> None:
        """Some editors write one, and nobody sees it."""
        assert load_file(tmp_path, b"\xef\xbb\xbfport = 9000\n").port == 9_000

    def test_values_are_written_as_toml_has_them(self, tmp_path: Path) -> None:
        """Integers, booleans, dates, and lists where the variable takes commas."""
        settings = load_file(
            tmp_path,
            "port = 9000\naccess_log = false\nremoval_date = 2031-01-01\n"
            "ban_durations = ['1m', '2m']\ntrusted_proxies = ['10.0.0.0/8']\n",
        )
        assert settings.port == 9_000
        assert settings.access_log is False
        assert settings.removal_date == datetime(2031, 1, 1, tzinfo=UTC)
        assert settings.ban_durations_ms == (60_000, 120_000)
        assert settings.trusted_proxies == (ip_network("10.0.0.0/8"),)

    def test_a_missing_file_is_refused(self, tmp_path: Path) -> None:
        """Nobody starts with defaults by accident; the message names the path once."""
        file = str(tmp_path / "absent.toml")
        with pytest.raises(ConfigurationError) as refused:
            load(config=file)
        assert str(refused.value) == f"PETSTORE_CONFIG={file!r} can't be read: No such file or directory."

    def test_a_bad_value_in_the_file_is_refused(self, tmp_path: Path) -> None:
        """Just as in the environment; the message names the file, where the operator has to look."""
        with pytest.raises(ConfigurationError) as refused:
            load_file(tmp_path, "port = 8080.5\n")
        assert str(refused.value) == (
            f"PETSTORE_PORT='8080.5', from {tmp_path}/settings.toml: expected a whole number from 1 to 65535."
        )

    def test_no_file_is_named_by_an_empty_variable(self) -> None:
        """PETSTORE_CONFIG="" is as if it were not set."""
        assert load(config="").port == 8_080


class TestSecrets:
    """The database's URL may carry a password, so it can come from a file."""

    def test_it_is_read_from_its_file(self, tmp_path: Path) -> None:
        """White space at the end of the file does not belong to it."""
        file = tmp_path / "url"
        file.write_text("sqlite:////srv/petstore.db\n")
        assert load(database_url_file=str(file)).database_url == "sqlite:////srv/petstore.db"

    def test_its_file_wins_over_the_toml_file(self, tmp_path: Path) -> None:
        """It stands in the environment, after all."""
        (tmp_path / "url").write_text("sqlite:///b.db")
        url_file = str(tmp_path / "url")
        settings = load_file(tmp_path, "database_url = 'sqlite:///a.db'", database_url_file=url_file)
        assert settings.database_url == "sqlite:///b.db"

    def test_both_at_once_contradict(self, tmp_path: Path) -> None:
        """Nobody can know which one was meant."""
        with pytest.raises(ConfigurationError, match="contradict; set one"):
            load(database_url="sqlite:///a.db", database_url_file=str(tmp_path / "url"))

    def test_a_missing_file_of_a_secret_is_refused(self, tmp_path: Path) -> None:
        """It is never an empty secret."""
        file = str(tmp_path / "absent")
        with pytest.raises(ConfigurationError) as refused:
            load(database_url_file=file)
        assert str(refused.value) == (
            f"PETSTORE_DATABASE_URL_FILE={file!r} can't be read: No such file or directory."
        )

    def test_another_encoding_is_refused(self, tmp_path: Path) -> None:
        """The message has no byte of the secret."""
        (tmp_path / "url").write_bytes(b"postgresql://u:hush\xe9@h/d")
        with pytest.raises(ConfigurationError, match="it is not UTF-8") as refused:
            load(database_url_file=str(tmp_path / "url"))
        assert "e9" not in str(refused.value)


class TestSharing:
    """What more than one process needs."""

    SHARED: ClassVar = {"database_url": "postgresql:///pets", "valkey_url": "valkey://127.0.0.1"}

    def test_several_processes_with_shared_counters(self) -> None:
        """Both at once, workers here and replicas elsewhere."""
        settings = load(workers="4", replicas="3", **self.SHARED)
        assert (settings.workers, settings.replicas) == (4, 3)

    @pytest.mark.parametrize("name", ["workers", "replicas"])
    def test_several_processes_without_are_refused(self, name: str) -> None:
        """The refusal has the reason and the remedy: each would grant the whole limit."""
        with pytest.raises(ConfigurationError, match=r"needs shared counters.*PETSTORE_VALKEY_URL"):
            load(**{name: "2"})

    def test_shared_counters_over_a_file_are_refused(self) -> None:
        """One process serves a SQLite file, so there is nobody to share with."""
        with pytest.raises(ConfigurationError, match="set PETSTORE_DATABASE_URL to postgresql"):
            load(valkey_url="valkey://127.0.0.1")


class TestMail:
    """The server that takes mail, and what mail needs besides."""

    FROM: ClassVar = {"mail_from": "petstore@example.com"}

    @every_case(
        ("url", "server"),
        [
            ("smtps://mail.example.com", MailServer("mail.example.com", 465, True)),
            ("smtp://mail.example.com", MailServer("mail.example.com", 587, False)),
            ("smtp://localhost:25/", MailServer("localhost", 25, False)),
            ("smtps://me:pw@mail:2465", MailServer("mail", 2465, True, "me", "pw")),
            ("smtp://[2001:db8::25]", MailServer("2001:db8::25", 587, False)),
            ("smtps://me:pw@[::1]:2465", MailServer("::1", 2465, True, "me", "pw")),
            (
                "smtps://me%40example.com:p%2Fa%3As%23s%3F%40%25%C3%BC%20@mail",
                MailServer("mail", 465, True, "me@example.com", "p/a:s#s?@%ü "),
            ),
        ],
    )
    def test_each_valid_url_of_a_mail_server_is_taken(self, url: str, server: MailServer) -> None:
        """Ports are those of RFC 8314 and 6409; a password has any character, in percent encoding."""
        assert load(smtp_url=url, **self.FROM).smtp_url == server

    def test_it_can_come_from_a_file(self, tmp_path: Path) -> None:
        """It carries a password; a refusal shows no part of it."""
        file = tmp_path / "url"
        file.write_text("smtps://me:geheim@mail.example.com\n")
        server = load(smtp_url_file=str(file), **self.FROM).smtp_url
        assert server == MailServer("mail.example.com", 465, True, "me", "geheim")
        for text in ("smtps://me:ge/heim@mail.example.com", "geheim"):
            file.write_text(text)
            with pytest.raises(
                ConfigurationError, match=r"PETSTORE_SMTP_URL, from .*expected a URL"
            ) as refused:
                load(smtp_url_file=str(file), **self.FROM)
            assert "heim" not in str(refused.value)

    @pytest.mark.parametrize("url", ["smtps://me:geheim@mail", "smtp://localhost"])
    def test_it_needs_an_address_to_send_from(self, url: str) -> None:
        """No address is guessed from the machine's name: receivers would refuse it."""
        with pytest.raises(
            ConfigurationError, match=r"PETSTORE_SMTP_URL needs PETSTORE_MAIL_FROM, .* such as"
        ):
            load(smtp_url=url)

    @every_case("host", ["0.0.0.0", "::", "192.168.0.1", "petstore"])
    def test_it_needs_the_public_address_where_others_reach_the_service(self, host: str) -> None:
        """A link to the listener's own address would lead nobody anywhere."""
        mail = {"smtp_url": "smtp://mail", "host": host, **self.FROM}
        with pytest.raises(ConfigurationError, match="PETSTORE_SMTP_URL needs PETSTORE_BASE_URL, such as"):
            load(**mail)
        base = "https://api.example.com/v1"
        assert load(base_url=base, **mail).base_url == base

    def test_a_sender_alone_sends_nothing(self) -> None:
        """Whatever the host is: it may be set first."""
        settings = load(host="0.0.0.0", **self.FROM)
        assert (settings.smtp_url, str(settings.mail_from)) == (None, "petstore@example.com")


class TestTogether:
    """Settings that are fine alone and wrong together."""

    @pytest.mark.parametrize(("grace", "window"), [("5m", "5m"), ("10m", "5m"), ("1s", "1s")])
    def test_the_grace_is_shorter_than_the_window(self, grace: str, window: str) -> None:
        """The ban's grace must be shorter than its window, else nothing would ever be counted."""
        with pytest.raises(ConfigurationError, match="PETSTORE_BAN_GRACE must be shorter"):
            load(ban_grace=grace, ban_window=window)

    @every_case(
        ("host", "loopback"),
        [
            ("127.0.0.1", True),
            ("127.8.8.8", True),
            ("::1", True),
            ("localhost", True),
            ("0.0.0.0", False),
            ("::", False),
            ("192.168.0.1", False),
            ("localhost.example", False),
        ],
    )
    def test_whether_only_this_machine_can_reach_it(self, host: str, loopback: bool) -> None:
        """What decides whether a first start issues a key."""
        assert load(host=host).is_loopback is loopback

    @pytest.mark.parametrize(
        ("settings", "own"),
        [({}, True), ({"trusted_proxies": "127.0.0.1"}, False), ({"host": "0.0.0.0"}, False)],
    )
    def test_a_proxy_on_this_machine_brings_others(self, settings: dict[str, str], own: bool) -> None:
        """They get no console by default, and their webhooks reach nothing on this machine."""
        loaded = load(**settings)
        assert loaded.has_console is own
        fault = guard_of(loaded).fault_of_url("http://127.0.0.1:8080/hook")
        assert (fault is None) is own
