"""The root of the command line: reads the settings once, joins the families, turns errors into exit codes."""

from __future__ import annotations

import sys

import click

from petstore import __version__, config
from petstore.cli.running import explain
from petstore.cli.serve import serve
from petstore.errors import ConfigurationError, PetstoreError


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="petstore")
@click.pass_context
def petstore(context: click.Context) -> None:
    """The pet store service and everything that its operators and staff do with it."""
    context.obj = config.load()


petstore.add_command(serve)


def main() -> None:
    """The console script."""
    try:
        petstore()
    except (ConfigurationError, PetstoreError) as error:
        sys.exit(explain(error))
