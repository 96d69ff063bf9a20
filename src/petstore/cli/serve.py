"""`petstore serve`: its options, and the first key and link for people. The service: server/parent.py."""

from __future__ import annotations

import gc
from functools import partial
from typing import TYPE_CHECKING

import click
import msgspec

from petstore.cli.context import Session
from petstore.cli.groups import EXIT_CUT_SHORT, EXIT_REFUSED, examples
from petstore.cli.output import echo_err
from petstore.cli.types import WholeNumber

if TYPE_CHECKING:
    from petstore.config import Settings


@click.command(
    epilog=examples(
        "petstore serve",
        "PETSTORE_HOST=0.0.0.0 PETSTORE_PORT=9000 petstore serve",
        "petstore serve --workers 4",
    )
)
@click.option("--workers", type=WholeNumber(1, 256), help="Processes that serve, as PETSTORE_WORKERS.")
@click.pass_obj
def serve(session: Session, workers: int | None) -> None:
    """Run the service until a signal stops it.

    Ctrl+C or SIGTERM stops it: what was accepted is carried out first. SIGHUP reads the settings anew and
    replaces the workers one by one (on a terminal it stops the service, since the terminal was closed).

    Creates the database when there is none, and migrates one as PETSTORE_MIGRATE says. On the first start,
    on a terminal and a loopback address, it issues a key on the Free plan for an account "local", and a
    one-time link to the console for a person "operator"; both are printed once. Elsewhere a line of the log
    has the commands for both.
    """
    gc.disable()  # until the modules are loaded (server/program.py): it would find nothing
    try:
        from petstore.ops import build
        from petstore.server import parent
        from petstore.server.parent import Ending

        build.commit()  # cached for the workers: the checkout may change before one starts
        settings = _with_workers(session.settings, workers)
        show_first = partial(_show_first, settings.is_staging)
        ending = parent.run(settings, session.settings, session.clock, show_first)
    finally:
        gc.enable()
    codes = {Ending.STOPPED: 0, Ending.CUT_SHORT: EXIT_CUT_SHORT, Ending.FAILED: EXIT_REFUSED}
    click.get_current_context().exit(codes[ending])


def _with_workers(settings: Settings, workers: int | None) -> Settings:
    """The settings with the option's number of workers, when it was given."""
    from petstore import config

    if workers is not None:
        settings = msgspec.structs.replace(settings, workers=workers)
        config.check(settings)
    return settings


def _show_first(is_staging: bool, secret: str, here: str, link: str | None) -> None:
    """Print the first key and the first link; they are never a line of the log."""
    whose = " of staging" if is_staging else ""
    what = "here is a key on the Free plan for the account 'local'"
    echo_err(f"\nFirst start{whose}: {what}. It is shown only now.\n")
    echo_err(f"  {secret}\n")
    if link is not None:
        echo_err(f"The console, by a link that works once, until tomorrow:\n\n  {link}\n")
    echo_err("Try the key:\n")
    echo_err(f"  curl -i -H 'Authorization: Bearer {secret}' {here}/v1/pets\n")
