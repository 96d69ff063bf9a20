"""`petstore config`: the settings in force, where each comes from and what it means; secrets are masked."""

from __future__ import annotations

import re

import click

from petstore import config as settings
from petstore.cli.context import Session
from petstore.cli.groups import command
from petstore.cli.output import write_json, write_table


@command(
    "config",
    "petstore config",
    "PETSTORE_PORT=9000 petstore config --json",
    "petstore config --check && echo right",
)
@click.option("--check", is_flag=True, help="Print nothing; the exit code says what a reload would.")
def config(_session: Session, check: bool, as_json: bool) -> None:
    """Show every setting that is in force.

    Its value, where that comes from, and what it means. Where a setting is wrong, the table shows what
    there is, standard error what is wrong, and the exit code is 78.

    With --check, as a service's reload finds them: 78 for a wrong setting, 75 where PostgreSQL has to be
    reached and can't be. Only the running service knows whether its database or Valkey is another one.
    """
    environment = settings.read_environment()
    if check:
        from petstore.server import reload

        reload.check_store(settings.load(environment))
        return
    rows, _ = settings.texts(environment)
    records = [_record(setting, rows[setting.name]) for setting in settings.TABLE]
    if as_json:
        write_json([{**record, "value": _number_or_text(record["value"])} for record in records])
    else:
        write_table(
            records, {"SETTING": "variable", "VALUE": "value", "FROM": "source", "MEANING": "summary"}
        )
    settings.load(environment)


def _record(setting: settings.Setting, origin: settings.SourcedText) -> dict[str, str]:
    """A setting as it is shown: the password that its text may hold is masked."""
    return {
        "name": setting.name,
        "variable": setting.variable,
        "value": settings.masked(origin.text) if setting.secret else origin.text,
        "default": setting.default,
        "source": "environment" if origin.source == setting.variable else origin.source,
        "summary": setting.summary,
    }


def _number_or_text(text: str) -> int | str:
    return int(text) if re.fullmatch("[0-9]{1,18}", text, re.ASCII) else text
