"""`petstore config`, and how every command meets settings that are wrong."""

from __future__ import annotations

import base64
import json
import os
from urllib.parse import urlsplit

import pytest

from petstore import config
from tests import conftest
from tests.cli.conftest import Cli
from tests.support.cases import every_case
from tests.support.postgres import fresh_database


def values(cli: Cli) -> dict[str, dict[str, object]]:
    """The printed settings by name."""
    return {row["name"]: row for row in cli.json("config")}


def test_the_settings_of_whoever_runs_the_tests_are_forgotten(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    """The settings of the shell are removed before the first test, so that no test depends on them."""
    monkeypatch.setenv("PETSTORE_NONSENSE", "1")
    assert "PETSTORE_NONSENSE" in cli.refused(78, "accounts", "list")
    conftest.pytest_configure(pytestconfig)
    assert {row["source"] for row in cli.json("config")} == {"default", "environment"}
    assert not [name for name in os.environ if name.startswith("PETSTORE_")]


class TestShow:
    def test_every_setting_is_shown_with_default_and_meaning(self, cli: Cli) -> None:
        """`config --json` shows each setting with its default and meaning, for a program to read."""
        rows = cli.json("config")
        assert [row["name"] for row in rows] == [setting.name for setting in config.TABLE]
        assert {row["variable"]: row["default"] for row in rows} == {
            setting.variable: setting.default for setting in config.TABLE
        }
        assert rows[2] == {
            "name": "port",
            "variable": "PETSTORE_PORT",
            "value": 8080,
            "default": "8080",
            "source": "default",
            "summary": "Port to listen on.",
        }

    def test_where_a_value_comes_from(self, cli: Cli) -> None:
        """The environment wins over the file, the file over the default, and it is said which won."""
        file = cli.folder / "petstore.toml"
        file.write_text('port = 9000\naccess_log = false\nhost = "127.0.0.2"\nban_durations = ["1m", "2m"]\n')
        cli.settings |= {"PETSTORE_CONFIG": str(file), "PETSTORE_PORT": "9001"}
        shown = values(cli)
        assert (shown["port"]["value"], shown["port"]["source"]) == (9001, "environment")
        assert (shown["host"]["value"], shown["host"]["source"]) == ("127.0.0.2", str(file))
        assert (shown["access_log"]["value"], shown["ban_durations"]["value"]) == ("off", "1m,2m")
        assert (shown["log_level"]["value"], shown["log_level"]["source"]) == ("info", "default")

    @every_case(
        ("url", "shown"),
        [
            ("sqlite:////var/lib/petstore.db", "sqlite:////var/lib/petstore.db"),
            ("postgresql://shop:geheim@db/pets", "postgresql://shop:***@db/pets"),
            ("postgresql://:geheim@db:5432,b:5433/pets", "postgresql://:***@db:5432,b:5433/pets"),
            ("valkeys://[::1]:6379/0?ca=/etc/ca.pem", "valkeys://[::1]:6379/0?ca=/etc/ca.pem"),
            ("unix:///run/valkey/valkey.sock?db=0", "unix:///run/valkey/valkey.sock?db=0"),
            ("postgresql://shop@db/pets?sslmode=off", "postgresql://shop@db/pets?sslmode=off"),
            ("postgresql://db/pets?user=shop&password=geheim&a=1", "postgresql://db/pets?***"),
            # What is no URL may be the password alone, in the wrong place.
            *((text, "***") for text in ("geheim", "postgresql:/me:geheim@db", "Postgresql://me:geheim@db")),
        ],
    )
    def test_password_is_masked(self, cli: Cli, url: str, shown: str) -> None:
        """Whatever the address is, a password in it is not shown."""
        cli.settings["PETSTORE_DATABASE_URL"] = url
        assert values(cli)["database_url"]["value"] == shown
        assert "heim" not in cli.ok("config")

    @pytest.mark.parametrize(
        ("variable", "scheme"),
        [
            ("PETSTORE_DATABASE_URL", "postgresql"),
            ("PETSTORE_DATABASE_URL", "mysql"),
            ("PETSTORE_VALKEY_URL", "valkey"),
            ("PETSTORE_VALKEY_URL", "mysql"),
        ],
    )
    def test_a_password_that_is_not_escaped_is_shown_nowhere(
        self, cli: Cli, variable: str, scheme: str
    ) -> None:
        """Just then somebody pastes the table, or the message, to ask for help."""
        if variable == "PETSTORE_VALKEY_URL":
            cli.settings["PETSTORE_DATABASE_URL"] = "postgresql://127.0.0.1:1/pets"
        for rest in (
            "shop:geheim@db/0", "shop:ge/heim@db:6379/0",
            "shop:ge@heim@db/0", "shop:ge#heim@db/0", "shop:ge?heim@db/0",
            "shop:ge[heim@db/0", "shop:ge:heim@db/0", "shop:ge heim@db/0", "shop:ge\\heim@db/0",
            ":/geheim@db/0", "/geheim@db/0", "db/0?password=geheim", "db/0?Password=1&geheim",
            "db/0?passfile=/x&x=geheim", "shop:12/geheim@db", "shop:gé/heim@db/0", "sh/op:geheim@db",
            "shop:%zz/geheim@db/0", "shop:ge\nheim@db/0",
        ):  # fmt: skip
            cli.settings[variable] = f"{scheme}://{rest}"
            for command in (["config"], ["config", "--json"], ["accounts", "list"]):
                result = cli.run(*command)
                for part in ("geheim", "heim", "ge/h", "12/"):
                    assert part not in result.stdout + result.stderr, (command, rest)

    def test_what_seals_webhooks_and_their_proxy_are_masked(self, cli: Cli) -> None:
        """No part of a key is shown, whether it is one or several."""
        keys = [base64.b64encode(bytes([number] * 32)).decode() for number in (5, 250)]
        cli.settings["PETSTORE_WEBHOOK_PROXY"] = "http://shop:geheim@proxy.internal:4750"
        for text in (keys[0], ",".join(keys)):
            cli.settings["PETSTORE_SECRETS_KEY"] = text
            shown = values(cli)
            assert shown["secrets_key"]["value"] == "***"
            assert shown["webhook_proxy"]["value"] == "http://shop:***@proxy.internal:4750"
            printed = cli.ok("config")
            assert not [key for key in keys if key[:8] in printed]
            assert "geheim" not in printed

    @every_case(
        ("url", "shown"),
        [
            ("smtps://me:geheim@mail.example.com", "smtps://me:***@mail.example.com"),
            ("smtp://me%40example.com:ge%2Fheim@mail:587", "smtp://me%40example.com:***@mail:587"),
            ("smtps://me:geheim@[2001:db8::25]:465", "smtps://me:***@[2001:db8::25]:465"),
            ("smtp://localhost:25", "smtp://localhost:25"),
            ("smtps://me:ge/heim@mail", "smtps://***"),
            ("smtps://me:ge#heim@mail", "smtps://***"),
            ("me:geheim@mail", "***"),
        ],
    )
    def test_the_password_of_the_mail_server_is_masked(self, cli: Cli, url: str, shown: str) -> None:
        """It is masked where it is not escaped too, for which the setting is refused."""
        cli.settings |= {"PETSTORE_SMTP_URL": url, "PETSTORE_MAIL_FROM": "Pet store <petstore@example.com>"}
        result = cli.run("config", "--json")
        rows = {row["name"]: row["value"] for row in json.loads(result.stdout)}
        assert (rows["smtp_url"], rows["mail_from"]) == (shown, "Pet store <petstore@example.com>")
        assert "heim" not in result.stdout + result.stderr + cli.run("config").stdout

    def test_secret_from_a_file(self, cli: Cli) -> None:
        """PETSTORE_DATABASE_URL_FILE is a source of its own."""
        file = cli.folder / "url"
        file.write_text("sqlite:///other.db\n")
        cli.settings = {"PETSTORE_DATABASE_URL_FILE": str(file)}
        shown = values(cli)["database_url"]
        assert (shown["value"], shown["source"]) == ("sqlite:///other.db", str(file))


class TestWrong:
    @every_case("line", ["accounts list", "serve", "openapi", "db check"])
    def test_every_command_ends_with_78(self, cli: Cli, line: str) -> None:
        """One line that names the setting."""
        cli.settings["PETSTORE_BAN_GRACE"] = "5m"
        assert "PETSTORE_BAN_GRACE" in cli.refused(78, *line.split())

    @pytest.mark.parametrize(
        ("variable", "text", "code"),
        [
            ("PETSTORE_PORT", "8081", 0),
            ("PETSTORE_PORT", "0", 78),
            ("PETSTORE_CONFIG", "/none", 78),
            ("PETSTORE_DATABASE_URL", "postgresql://shop@127.0.0.1:1/pets", 75),
            ("PETSTORE_DATABASE_URL", "postgresql://db/pets?sslrootcert=/dev/null", 78),
        ],
    )
    def test_the_check_of_a_reload_is_an_exit_code(
        self, cli: Cli, variable: str, text: str, code: int
    ) -> None:
        """One line at the most: systemd writes it to the journal before each reload."""
        cli.settings[variable] = text
        result = cli.run("config", "--check")
        assert (result.exit_code, result.stdout) == (code, "")
        assert len(result.stderr.splitlines()) == (code != 0)

    def test_the_check_of_a_reload_asks_postgresql_beside_a_valkey(self, cli: Cli) -> None:
        """`config --check` asks PostgreSQL as the service does: what it refuses, such as a changed password
        or another name, is wrong. Where it is away, no new worker would come to serve."""
        cli.settings["PETSTORE_VALKEY_URL"] = "valkey://127.0.0.1:1/0"
        with fresh_database(migrated=True) as url:
            cli.settings["PETSTORE_DATABASE_URL"] = url
            assert cli.run("config", "--check").exit_code == 0
            cli.settings["PETSTORE_DATABASE_URL"] = urlsplit(url)._replace(path="/none").geturl()
            assert "no such database" in cli.refused(78, "config", "--check")
        cli.settings["PETSTORE_DATABASE_URL"] = "postgresql://shop@127.0.0.1:1/pets"
        assert "can't be reached" in cli.refused(75, "config", "--check")

    @pytest.mark.parametrize("place", ["cache:port", "cache?ca=/none", "cache?ca=/dev/null"])
    def test_the_check_of_a_reload_reads_the_address_of_valkey(self, cli: Cli, place: str) -> None:
        """Each new worker would end over it."""
        cli.settings["PETSTORE_DATABASE_URL"] = "postgresql://shop@127.0.0.1:1/pets"
        cli.settings["PETSTORE_VALKEY_URL"] = f"valkeys://{place}"
        assert "PETSTORE_VALKEY_URL" in cli.refused(78, "config", "--check")

    def test_without_its_file_config_shows_what_there_is(self, cli: Cli) -> None:
        """The command to which the complaint refers still shows the table, and complains too."""
        cli.settings["PETSTORE_CONFIG"] = "/none"
        result = cli.run("config", "--json")
        assert (result.exit_code, result.stderr.startswith("petstore: PETSTORE_CONFIG")) == (78, True)
        assert len(json.loads(result.stdout)) == len(config.TABLE)

    @every_case(
        ("settings", "line", "complaint"),
        [
            ({"PETSTORE_NO_SUCH": "1"}, "", "PETSTORE_NO_SUCH"),
            ({"PETSTORE_DRAIN": "soon"}, "", "PETSTORE_DRAIN='soon'"),
            ({"PETSTORE_DATABASE_URL_FILE": "/none"}, "", "PETSTORE_DATABASE_URL_FILE='/none'"),
            ({}, "prot = 8081", "no such setting: prot"),
            ({}, "host = {}", "host takes one value"),
        ],
    )
    def test_one_wrong_name_hides_no_other_setting(
        self, cli: Cli, settings: dict[str, str], line: str, complaint: str
    ) -> None:
        """Beside it the table has what the file and the environment say, where the mistake is looked for."""
        file = cli.folder / "petstore.toml"
        file.write_text(f"{line}\nport = 9000\n", encoding="utf-8")
        cli.settings = {"PETSTORE_CONFIG": str(file), "PETSTORE_LOG_LEVEL": "error", **settings}
        result = cli.run("config", "--json")
        assert (result.exit_code, complaint in result.stderr) == (78, True)
        shown = {each["name"]: (each["value"], each["source"]) for each in json.loads(result.stdout)}
        assert shown["port"] == (9000, str(file))
        assert shown["log_level"] == ("error", "environment")
