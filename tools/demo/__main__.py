"""`make demo`: makes the store, says what to try, and serves it with a staging beside it."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import nullcontext
from pathlib import Path

import click

from petstore.core.clock import SystemClock
from petstore.core.errors import OperatorError
from tools.demo.making import make
from tools.demo.place import Refused, cleared
from tools.demo.shop import Failed
from tools.demo.story import DAYS
from tools.serve import environments

# Of the server at the end, for the lines that are printed.
_ADDRESS = ("PETSTORE_HOST", "PETSTORE_PORT")


@click.command()
@click.option(
    "--seed", default=1, show_default=True, help="The same seed makes the same store, but for keys."
)
@click.option(
    "--folder", type=click.Path(path_type=Path), default=Path("demo"), show_default=True, help="Made there."
)
@click.option("--days", type=click.IntRange(2, DAYS), default=DAYS, show_default=True, help="Days of usage.")
@click.option("--database-url", help="Made in this empty PostgreSQL database instead.")
@click.option("--serve/--no-serve", default=True, help="Serve it at the end, until Ctrl+C.")
def main(seed: int, folder: Path, days: int, database_url: str | None, serve: bool) -> None:
    """Make a store with animals, customers, orders and usage, in a directory of its own, and serve it."""
    place = nullcontext(None) if database_url else cleared(folder)
    try:
        with place as database:
            environment = {"PETSTORE_DATABASE_URL": database_url or f"sqlite:///{database}"}
            environment |= {name: os.environ[name] for name in _ADDRESS if name in os.environ}
            alone = environments(os.environ | environment) is None
            stage = {} if alone else {"PETSTORE_STAGE": "production"}
            with click.progressbar(length=days, label="Making a store", file=sys.stderr) as bar:
                making = make(environment | stage, seed, days, SystemClock().now_ms(), lambda: bar.update(1))
                _, text = asyncio.run(making)
            click.echo(text)
    except (Refused, Failed, OperatorError) as error:
        raise click.ClickException(str(error)) from None
    if serve:
        sys.stdout.flush()
        os.execve(sys.executable, [sys.executable, "-m", "tools.serve"], os.environ | environment)


if __name__ == "__main__":
    main()
