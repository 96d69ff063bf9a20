"""`petstore pets import` and `petstore pets export`: stock lists, under the rules of the interface."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click
import msgspec
from msgspec.structs import replace

from petstore.cli.context import Session, with_store
from petstore.cli.groups import examples
from petstore.cli.output import echo_err, json_option, row_progress, write_json
from petstore.cli.stock_reading import FAULTS, FORMATS, SUFFIXES, Spool, StockList
from petstore.cli.stock_writing import PAGE_WRITERS, BadRows, rejects_file, whole_file
from petstore.cli.types import INT64, PET_STATUS
from petstore.core.errors import OperatorError, StoreUnavailable
from petstore.core.pets import PageQuery, PetStatus
from petstore.core.stock import MEMBERS, SOURCE_KEYS_MAX, StockImport, StockPlan, StockRow

if TYPE_CHECKING:
    from petstore.wiring.administration import Store

_ROWS_AT_A_TIME = 10_000
_PLANS_MAX = 10

format_option = click.option(
    "--format", "kind", type=click.Choice(list(FORMATS)), help="Of the list, unless its name says it."
)


def _checked_key(_context: click.Context, _option: click.Parameter, name: str | None) -> str | None:
    if name is None:
        return None
    if name in (*MEMBERS, FAULTS) or not name:
        raise click.BadParameter(f"{name!r} can't be the column of the source keys.")
    if not name.isprintable() or '"' in name or "\\" in name:
        raise click.BadParameter(
            f"{name!r} can't be the column of the source keys: use printable characters but \" and \\."
        )
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
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
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
    file: Path,
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
    chosen = FORMATS[_format_of(file.name, kind)]
    _check_apart(file, rejects)
    with (
        _opened(file) as stream,
        closing(Spool()) as good,
        rejects_file(None if dry_run else rejects) as kept,
    ):
        listed = chosen(stream, key_name)
        bad = BadRows(listed, kept)
        read = _read(listed, good, bad)

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
    _report(summary, as_json, dry_run, rejects)


def _opened(file: Path) -> AbstractContextManager[BinaryIO]:
    return nullcontext(sys.stdin.buffer) if str(file) == "-" else file.open("rb")


def _check_apart(file: Path, rejects: Path | None) -> None:
    source = Path("/dev/stdin") if str(file) == "-" else file
    if rejects is not None and rejects.exists() and source.exists() and rejects.samefile(source):
        raise click.UsageError("The rejected rows need a file of their own.", click.get_current_context())


def _format_of(name: str, kind: str | None) -> str:
    """The format that the option or the end of the file's name says."""
    found = kind or SUFFIXES.get(Path(name).suffix.lower())
    if found is None:
        raise click.UsageError(
            "Say what the list is: --format csv or --format jsonl.", click.get_current_context()
        )
    return found


def _read(listed: StockList, good: Spool, bad: BadRows) -> int:
    """Check the whole list; the number of its rows."""
    read, rows = 0, list[StockRow]()
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
        progress(len(rows))
    bad.end_of_file()
    return read


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


@click.command(
    "export",
    epilog=examples(
        "petstore pets export stock.csv --status available",
        "petstore pets export --format jsonl --source-key sku | gzip > stock.jsonl.gz",
    ),
)
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path), default="-")
@format_option
@click.option("--status", type=PET_STATUS, help="Only animals in this state.")
@click.option("--category", type=INT64, metavar="N", help="Only animals of this category.")
@click.option(
    "--source-key",
    "key_name",
    metavar="COLUMN",
    callback=_checked_key,
    help="Write the suppliers' keys too, under this name; empty for an animal without one.",
)
@click.pass_obj
def export_pets(
    session: Session,
    file: Path,
    kind: str | None,
    status: str | None,
    category: int | None,
    key_name: str | None,
) -> None:
    """Write the animals as a stock list, which an import takes.

    FILE appears whole or not at all; without one the list goes to standard output, as CSV unless --format
    says otherwise. Every animal that is there before and is not removed meanwhile is in the list once, as it
    was when its page was read. Names that a spreadsheet would run as formulas get an apostrophe in front,
    which an import takes off again.
    """
    to_terminal = str(file) == "-"
    chosen = kind or "csv" if to_terminal else _format_of(file.name, kind)
    pages = PAGE_WRITERS[chosen](key_name)

    async def write(store: Store, out: BinaryIO) -> None:
        out.write(pages.heading())
        chosen_status = PetStatus(status) if status else None
        query = PageQuery(SOURCE_KEYS_MAX, chosen_status, category_id=category)
        while True:
            page = await store.pets.page(query)
            keys = await store.stock.source_keys([pet.id for pet in page.pets]) if key_name else {}
            out.write(pages.page(page.pets, keys))
            if not page.has_more:
                return
            query = replace(query, after_id=page.pets[-1].id)
            await asyncio.sleep(0)  # SQLite's next page is read from a newer state

    with whole_file(None if to_terminal else file) as kept:
        out = kept or sys.stdout.buffer
        with_store(session, lambda store: write(store, out))
        out.flush()
