"""`petstore config`: the settings in force, where each comes from and what it means; secrets are masked."""

from __future__ import annotations

import re

import click

from petstore import config
from petstore.cli.groups import examples
from petstore.cli.output import json_option, write_json, write_table
from petstore.core.errors import ConfigurationError


@click.command("config", epilog=examples("petstore config", "PETSTORE_PORT=9000 petstore config --json"))
@json_option
def show_config(as_json: bool) -> None:
    """Show every setting that is in force.

    Its value, where that comes from, and what it means. Where a setting is wrong, the table shows what
    there is, standard error what is wrong, and the exit code is 78.
    """
    environment = config.read_environment()
    try:
        rows = config.texts(environment)
    except ConfigurationError:
        known = {setting.variable for setting in config.TABLE}
        rows = config.texts({name: text for name, text in environment.items() if name in known})
    if as_json:
        write_json([_as_json(setting, rows[setting.name]) for setting in config.TABLE])
    else:
        write_table(
            ("SETTING", "VALUE", "FROM", "MEANING"),
            [
                (
                    setting.variable,
                    _shown(setting, rows[setting.name].text),
                    _source(setting, rows[setting.name]),
                    setting.summary,
                )
                for setting in config.TABLE
            ],
        )
    config.load(environment)


def _shown(setting: config.Setting, text: str) -> str:
    """The text in force, without a password that it may hold."""
    return config.masked(text) if setting.secret else text


def _source(setting: config.Setting, origin: config.Origin) -> str:
    return "environment" if origin.source == setting.variable else origin.source


def _as_json(setting: config.Setting, origin: config.Origin) -> dict[str, object]:
    shown = _shown(setting, origin.text)
    is_number = re.fullmatch("[0-9]{1,18}", shown, re.ASCII) is not None
    return {
        "name": setting.name,
        "variable": setting.variable,
        "value": int(shown) if is_number else shown,
        "default": setting.default,
        "source": _source(setting, origin),
        "summary": setting.summary,
    }
