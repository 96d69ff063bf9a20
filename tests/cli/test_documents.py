"""The documents say what the program does: every command, every setting. Sessions print what they show."""

from __future__ import annotations

import pwd
import re
from pathlib import Path

import click
import pytest

from petstore import config
from petstore.cli.groups import (
    EXIT_CONFIGURATION,
    EXIT_CUT_SHORT,
    EXIT_INTERRUPTED,
    EXIT_REFUSED,
    EXIT_UNAVAILABLE,
    EXIT_USAGE,
)
from tests.cli.session import ALICE, PLAYED, SERVER_AT_WORK, play
from tests.cli.test_root import ALL, LEAVES
from tests.docs.documents import ROOT, section, text_of

CLI = text_of(ROOT / "docs" / "cli.md")
COMMANDS = section(CLI, "The commands")
SETTINGS = text_of(ROOT / "docs" / "settings.md")


class TestCommands:
    def test_every_command_is_named(self) -> None:
        """docs/cli.md lists each command, in the row of its first word, and no other."""
        rows = re.findall(r"(?m)^\* `petstore ([a-z-]+)`(?:: ((?:`[a-z-]+`(?:, )?)+))?", COMMANDS)
        named = [f"{group} {name}" for group, names in rows for name in re.findall(r"`([a-z-]+)`", names)]
        alone = [group for group, _ in rows if group in LEAVES]
        assert sorted(named + alone) == sorted(LEAVES)
        assert {group for group, _ in rows} == {path for path in ALL if " " not in path}

    def test_every_option_is_explained(self) -> None:
        """`--help` explains each, and the document leads there."""
        for path, command in LEAVES.items():
            options = [option for option in command.params if isinstance(option, click.Option)]
            assert [option.name for option in options if not option.help] == [], path

    def test_sessions_print_what_the_document_says(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Every command, played in order; `.venv/bin/python -m tests.cli.session` writes it anew."""
        monkeypatch.setattr(pwd, "getpwuid", lambda _uid: ALICE)
        monkeypatch.chdir(tmp_path)
        text = PLAYED.read_text(encoding="utf-8")
        assert SERVER_AT_WORK in text
        assert play(text) == text

    def test_every_exit_code(self) -> None:
        """The list of exit codes is complete."""
        listed = {int(code) for code in re.findall(r"(?m)^\* \*\*(\d+)\*\*: ", CLI)}
        assert listed == {
            0,
            EXIT_REFUSED,
            EXIT_USAGE,
            EXIT_CUT_SHORT,
            EXIT_UNAVAILABLE,
            EXIT_CONFIGURATION,
            EXIT_INTERRUPTED,
        }


class TestSettings:
    def test_every_setting_with_its_default(self) -> None:
        """docs/settings.md has a line for each row of config.TABLE, and no other."""
        rows = re.findall(r"(?m)^\* `(PETSTORE_\w+)` \((?:`([^`]*)`|empty)\): .+$", SETTINGS)
        expected = {setting.variable: setting.default for setting in config.TABLE}
        assert len(rows) == len(dict(rows))
        assert dict(rows) == expected | {"PETSTORE_CONFIG": ""}

    def test_every_secret_can_come_from_a_documented_file(self) -> None:
        """Containers are given secrets as files."""
        secrets = {f"{setting.variable}_FILE" for setting in config.TABLE if setting.secret}
        assert set(re.findall(r"PETSTORE_\w+_FILE", SETTINGS)) == secrets

    def test_example_of_the_file_is_accepted(self, tmp_path: Path) -> None:
        """The TOML in the document can be used as it stands."""
        (example,) = re.findall(r"(?s)```toml\n(.*?)```", SETTINGS)
        file = tmp_path / "petstore.toml"
        file.write_text(example)
        settings = config.load({"PETSTORE_CONFIG": str(file)})
        assert settings.port == 8080
        assert len(settings.trusted_proxies) == 2
        assert settings.ban_durations_ms[0] == 60_000
        assert settings.access_log is False
        assert settings.removal_date.year == 2031
