"""How results are printed."""

from __future__ import annotations

import io
import json

import pytest

from petstore.cli import output
from tests.cli.conftest import Cli


class Terminal(io.StringIO):
    """A standard output that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("ms", "iso", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z", "1970-01-01 00:00:00Z"),
        (1_795_219_200_007, "2026-11-21T00:00:00.007Z", "2026-11-21 00:00:00Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z", "9999-12-31 23:59:59Z"),
        (2**62, "9999-12-31T23:59:59.999Z", "9999-12-31 23:59:59Z"),
        (None, None, "-"),
    ],
)
def test_a_time_is_iso_8601_in_utc(
    capsys: pytest.CaptureFixture[str], ms: int | None, iso: str | None, text: str
) -> None:
    """A time is in ISO 8601 and UTC, for people without milliseconds, and never a failure."""
    output.write_records([{"at": output.moment(ms)}], {"AT": "at"}, as_json=True, empty="")
    output.write_records([{"at": output.moment(ms)}], {"AT": "at"}, as_json=False, empty="")
    *document, _, shown = capsys.readouterr().out.splitlines()
    assert json.loads("".join(document)) == [{"at": iso}]
    assert shown == text


@pytest.mark.parametrize(
    ("line", "remark"),
    [
        ("keys list shop", "The account has no keys yet: petstore keys issue shop"),
        ("pets list --after 1", "No animals match."),
        ("categories list", "No category has a name."),
        ("journal --about pet:9", "No entries match."),
    ],
)
def test_nothing_to_list(shop: Cli, line: str, remark: str) -> None:
    """No failure: a program gets [], a person a remark or the next step."""
    shop.ok("pets", "add", "Rex", "--category", "1")
    result = shop.run(*line.split())
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", f"{remark}\n")
    assert shop.json(*line.split()) == []


class TestTable:
    def test_styled_on_a_terminal(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Bold headings and coloured states, the same words, and no markup read from what is shown."""
        shown = on_terminal(monkeypatch)
        assert "\x1b[" in shown
        assert "[red]x" in shown

    @pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
    def test_plain_where_colour_is_unwanted(
        self, monkeypatch: pytest.MonkeyPatch, name: str, value: str
    ) -> None:
        """NO_COLOR and terminals that can't are respected: not a single escape."""
        shown = on_terminal(monkeypatch, **{name: value})
        assert shown == "ID  NAME    STATE\n 1  [red]x  active\n"


def on_terminal(monkeypatch: pytest.MonkeyPatch, **environment: str) -> str:
    """A table as a terminal gets it."""
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in ({"TERM": "xterm-256color"} | environment).items():
        monkeypatch.setenv(name, value)
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    output.write_table(
        [{"id": 1, "name": "[red]x", "state": "active"}], {"ID": "id", "NAME": "name", "STATE": "state"}
    )
    return terminal.getvalue()
