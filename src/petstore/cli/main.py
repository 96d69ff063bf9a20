"""The root of the command line: the table of commands. Each is loaded when it is run, not for the list."""

from __future__ import annotations

import os
import signal
import sys
from io import FileIO, TextIOWrapper

import click

from petstore import __version__
from petstore.cli.groups import PetstoreCli, examples

SUMMARIES = {
    "serve": "Run the service until a signal stops it.",
    "accounts": "Customers, and the plan that each of them has.",
    "keys": "The keys of customers' programs.",
    "usage": "Show an account's limits, bans and days, or print bills.",
    "bans": "List the keys that are banned now.",
    "limits": "The counters of limits that replicas share.",
    "pets": "The animals of the store: list, add, change, remove.",
    "categories": "Names of categories: labels, an animal may be of any.",
    "orders": "The orders of all accounts: place, approve, deliver, cancel.",
    "people": "The people who use the console.",
    "journal": "Show who changed what, the newest change first.",
    "events": "Show the events that clients see, the oldest first.",
    "webhooks": "The webhooks of all accounts: list, disable, enable, retry.",
    "notifications": "Mail to contacts: its kinds, what waits, and a test.",
    "staging": "Fill staging from production or a seed, or empty it.",
    "db": "The database: create, check, back up, restore and copy it.",
    "config": "Show every setting that is in force.",
    "openapi": "Print the OpenAPI document of the interface.",
    "completion": "Print a shell's script for completion.",
}


def _show_version(context: click.Context, _option: click.Parameter, asked: bool) -> None:
    if asked and not context.resilient_parsing:
        from petstore.ops import build

        click.echo(f"petstore {__version__} (commit {build.commit()})")
        context.exit()


@click.group(
    cls=PetstoreCli,
    summaries=SUMMARIES,
    name="petstore",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=examples(
        "petstore serve                            # the service on 127.0.0.1:8080",
        "petstore accounts add shop --plan pro     # a customer",
        "petstore keys issue shop                  # a key for its program",
        "petstore keys --help                      # what else can be done with keys",
    ),
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_show_version,
    help="Show the version and the commit, and exit.",
)
@click.pass_context
def petstore(context: click.Context) -> None:
    """The pet store service, and everything that its operators and staff do with it.

    Every command but `serve`, `db restore` and `db copy` works beside a running server, and acts on its next
    request. Settings are environment variables that begin with PETSTORE_; `petstore config` shows them.

    Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 (`serve`) stopped but cut somebody off, 75 the
    store is busy or unavailable (try again), 78 a setting, a right or the database is wrong (correct it
    first), 130 interrupted by Ctrl+C.
    """
    from petstore.cli.context import Session

    context.ensure_object(Session)


def main() -> None:
    """The console script."""
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a character that the terminal can't show is escaped
            stream.reconfigure(errors="backslashreplace")
    try:
        petstore()
    finally:  # another Ctrl+C ends the process at once, without a traceback of Python's shutdown
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _open_closed_streams() -> None:
    """Open what the shell has closed: after `>&-` Python has no stream, and a new key would be lost without
    an error.

    In this order, so that each gets its own descriptor, and no database does.
    """
    if sys.stdin is None:
        sys.stdin = TextIOWrapper(FileIO(os.devnull))
    if sys.stdout is None:  # every write fails; unbuffered, or Python's shutdown would try again
        sys.stdout = TextIOWrapper(FileIO(os.open(os.devnull, os.O_RDONLY), "w"), write_through=True)
    if sys.stderr is None:
        sys.stderr = TextIOWrapper(FileIO(os.devnull, "w"))
