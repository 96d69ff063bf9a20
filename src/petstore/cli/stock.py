"""`petstore pets import` and `export`: stock lists, under the rules of the interface."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click
import msgspec

from petstore.cli.context import Session, with_store
from petstore.cli.groups import examples
from petstore.cli.output import echo_err, json_option, row_progress, write_json
from petstore.cli.stock_files import FAULTS, FORMATS, Spool, StockList
from petstore.cli.stock_rejects import BadRows
from petstore.core.errors import OperatorError, StoreUnavailable
from petstore.core.stock import MEMBERS, StockImport, StockPlan, StockRow

if TYPE_CHECKING:
    from petstore.wiring.administration import Store

_ROWS_AT_A_TIME = 10_000
_PLANS_MAX = 10
_SUFFIXES = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}

format_option = click.option(
    "--format", "kind", type=click.Choice(list(FORMATS)), help="Of the list, unless its name says it."
)


def _checked_key(_context: click.Context, _option: click.Parameter, name: str | None) -> str | None:
    if name is not None and (name in (*MEMBERS, FAULTS) or not name):
        raise click.BadParameter(f"{name!r} can't be the column of the source keys.")
    return name


class Summary(msgspec.Struct, rename="camel"):
    """What an import has done; a dry run, what it would do."""

    read: int
    added: int
    changed: int
    unchanged: int
    rejected: int
    locked_seconds: float


@click.command(
    "import",
    epilog=examples(
        "petstore pets import stock.csv --dry-run",
        "petstore pets import stock.csv --source-key sku --skip-bad rejects.csv",
        "zcat stock.jsonl.gz | petstore pets import - --format jsonl --source-key sku",
    ),
)
@click.argument("file", type=click.File("rb"))
@format_option
@click.option(
    "--source-key",
    "key_name",
    metavar="COLUMN",
    callback=_checked_key,
    help="The column or member with the supplier's key of an animal: a repetition changes what changed.",
)
@click.option("--dry-run", is_flag=True, help="Say what would happen, and store nothing.")
@click.option(
    "--skip-bad",
    "rejects",
    metavar="REJECTS",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write bad rows with their faults to this file, and store the others.",
)
@json_option
@click.pass_obj
def import_pets(
    session: Session,
    file: BinaryIO,
    kind: str | None,
    key_name: str | None,
    dry_run: bool,
    rejects: Path | None,
    as_json: bool,
) -> None:
    """Add the animals of a stock list, or bring them up to date.

    FILE, or - for standard input, is CSV with the columns name, categoryId and status in any order, or a
    JSON object with these members in each line. A missing status is available. All rows are stored in one
    transaction, or none: every bad row is reported with its line, and the exit code is 1.
    """
    listed = FORMATS[_format_of(file.name, kind)](file, key_name)
    with BadRows(listed, None if dry_run else rejects) as bad:
        read, good = _read(listed, bad)

        def stores(rejected: int) -> bool:
            return not dry_run and (rejects is not None or not rejected)

        async def work(store: Store) -> Summary:
            async with store.stock.importing(session.actor, key_name) as load:
                await _stage(load, good, read - bad.count)
                plan, locked_seconds = await _plan_and_store(load, bad, stores=stores)
            return Summary(read, plan.added, plan.changed, plan.unchanged, bad.count, locked_seconds)

        summary = with_store(session, work)
        bad.show()
        if summary.rejected and rejects is None:
            raise OperatorError(_refusal(summary))
        if not dry_run:
            bad.publish()
    _report(summary, as_json, dry_run, rejects)


def _format_of(name: str, kind: str | None) -> str:
    """The format that the option or the end of the file's name says."""
    found = kind or _SUFFIXES.get(Path(name).suffix.lower())
    if found is None:
        raise click.UsageError(
            "Say what the list is: --format csv or --format jsonl.", click.get_current_context()
        )
    return found


def _read(listed: StockList, bad: BadRows) -> tuple[int, Spool]:
    """Check the whole list; how many rows it has, and the good ones."""
    read, good, rows = 0, Spool(), list[StockRow]()
    with row_progress("Checking rows") as (_, progress):
        for record in listed.records():
            read += 1
            if record.row is None:
                bad.add(record.line, record.fault, record.raw)
            else:
                rows.append(record.row)
                if len(rows) == _ROWS_AT_A_TIME:
                    good.add(rows)
                    progress(len(rows))
                    rows = []
    good.add(rows)
    bad.end_of_file()
    return read, good


async def _stage(load: StockImport, good: Spool, count: int) -> None:
    with row_progress("Preparing rows") as (expect, progress):
        expect(count)
        for rows in good.chunks():
            await load.stage(rows)
            progress(len(rows))


async def _plan_and_store(
    load: StockImport, bad: BadRows, *, stores: Callable[[int], bool]
) -> tuple[StockPlan, float]:
    """Store, unless a bad row forbids it; what was done, and for how many seconds others had to wait."""
    for _ in range(_PLANS_MAX):
        bad.plan_again()
        plan = await load.plan()
        async for page in load.rejected():
            for row, fault in page:
                bad.add_row(row, fault)
        if not stores(bad.count):
            return plan, 0.0
        bad.sync()
        stored = await load.store()
        if stored is not None:
            return plan, stored.locked_seconds
    raise StoreUnavailable("Animals of the list were changed all the time; nothing was stored.")


def _refusal(summary: Summary) -> str:
    return (
        f"{summary.rejected:,} of {summary.read:,} rows can't be imported; nothing was stored. Correct them,"
        " or store the others with --skip-bad FILE."
    )


def _report(summary: Summary, as_json: bool, dry_run: bool, rejects: Path | None) -> None:
    if as_json:
        write_json(summary)
        return
    counts = f"{summary.added:,} added, {summary.changed:,} changed, {summary.unchanged:,} unchanged"
    click.echo(f"{'Would be: ' if dry_run else ''}{counts}, {summary.rejected:,} rejected.")
    if summary.rejected and not dry_run:
        echo_err(f"The rejected rows and their faults are in {rejects}.")
