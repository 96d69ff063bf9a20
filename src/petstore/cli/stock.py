"""`petstore pets import` and `petstore pets export`: stock lists, under the rules of the interface."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click
import msgspec

from petstore.cli.context import Session, read_store, with_store
from petstore.cli.files import rejects_file, whole_file
from petstore.cli.groups import command, examples
from petstore.cli.output import echo_err, row_progress, write_json
from petstore.cli.types import INT64, PET_STATUS, checked
from petstore.core.errors import OperatorError
from petstore.core.lists.importing import BadRows, Spool, check_rows, plan_and_store, stage_rows
from petstore.core.lists.reading import FORMATS, SENT_SUFFIXES, SUFFIXES, check_key_column, open_list
from petstore.core.lists.stock_list import ListContext, StockList
from petstore.core.lists.writing import written_list
from petstore.core.pets import PetQuery, PetStatus
from petstore.core.stock import SOURCE_KEYS_MAX, StockImport, StockPlan

if TYPE_CHECKING:
    from petstore.wiring.administration import Store

format_option = click.option(
    "--format",
    "kind",
    type=click.Choice(list(FORMATS)),
    help="The format of the list, unless the file's name says it. csv includes Excel for an import.",
)


class Summary(msgspec.Struct, rename="camel"):
    """What an import has done; a dry run, what it would do."""

    read: int
    added: int
    changed: int
    unchanged: int
    rejected: int
    locked_seconds: float


@command(
    "import",
    "petstore pets import stock.csv --dry-run",
    "petstore pets import stock.csv --source-key sku --skip-bad rejects.csv",
    "zcat stock.jsonl.gz | petstore pets import - --format jsonl --source-key sku",
)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@format_option
@click.option(
    "--source-key",
    "key_name",
    metavar="COLUMN",
    callback=checked(check_key_column),
    help="The column or member with the supplier's key: the list, sent again, changes the same animals.",
)
@click.option("--dry-run", is_flag=True, help="Say what would happen, and store nothing.")
@click.option(
    "--skip-bad",
    "rejects",
    metavar="REJECTS",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write bad rows with their faults to this file, and store the others.",
)
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

    FILE, or - for standard input, is Excel (.xlsx) or CSV with columns such as name, category and status, or
    a JSON object with name, categoryId and status in each line. A missing status is available. All rows are
    stored in one transaction, or none: every bad row is reported with its line, and the exit code is 1.
    """
    form = _format_of(file.name, kind, SENT_SUFFIXES)
    _check_apart(file, rejects)
    known = with_store(session, _known)
    with (
        _told_where_room_is_missing(),
        _opened(file) as stream,
        rejects_file(None if dry_run else rejects) as kept,
        tempfile.TemporaryFile() as spooled,
    ):
        listed, good = open_list(form, stream, key_name, known), Spool(spooled)
        bad = BadRows(listed, kept)
        read = _read(listed, good, bad)

        def wants(_: StockPlan) -> bool:
            return not dry_run and (not bad.count or kept is not None)

        async def work(store: Store) -> Summary:
            async with store.stock.importing(session.actor, listed.key_name) as load:
                await _stage(load, good, read - bad.count)
                plan, seconds = await plan_and_store(load, bad, wants=wants, before_store=lambda: _sync(kept))
            return Summary(read, plan.added, plan.changed, plan.unchanged, bad.count, seconds or 0.0)

        summary = with_store(session, work)
    _show(listed, bad)
    _report(summary, as_json, dry_run, rejects)


@contextmanager
def _told_where_room_is_missing() -> Iterator[None]:
    """Rows and rejects are written before anything is stored. Raises OperatorError for a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise OperatorError(
            f"{error.strerror}: the list needs room in {tempfile.gettempdir()}, its rejects where they go."
            " Nothing was stored. Make room, or name another directory with TMPDIR."
        ) from error


@contextmanager
def _opened(file: Path) -> Iterator[BinaryIO]:
    """The list, to be read from its beginning as often as it takes to tell what it is."""
    if str(file) != "-":
        with file.open("rb") as opened:
            yield opened
        return
    with tempfile.TemporaryFile() as copied:
        shutil.copyfileobj(sys.stdin.buffer, copied)
        copied.seek(0)
        yield copied


async def _known(store: Store) -> ListContext:
    return ListContext(await store.categories.all(), await store.uploads.columns())


def _check_apart(file: Path, rejects: Path | None) -> None:
    source = Path("/dev/stdin") if str(file) == "-" else file
    if rejects is not None and rejects.exists() and source.exists() and rejects.samefile(source):
        raise click.UsageError("The rejected rows need a file of their own.", click.get_current_context())


def _format_of(name: str, kind: str | None, suffixes: Mapping[str, str]) -> str:
    """The format that the option or the end of the file's name says."""
    found = kind or suffixes.get(Path(name).suffix.lower())
    if found is None:
        raise click.UsageError(
            "Say what the list is: --format csv or --format jsonl.", click.get_current_context()
        )
    return found


def _read(listed: StockList, good: Spool, bad: BadRows) -> int:
    """Check the whole list; the number of its rows."""
    with row_progress("Checking rows") as (_, progress):
        return check_rows(listed, good, bad, progress)


async def _stage(load: StockImport, good: Spool, count: int) -> None:
    with row_progress("Preparing rows") as (expect, progress):
        expect(count)
        await stage_rows(load, good, progress)


def _show(listed: StockList, bad: BadRows) -> None:
    """Print how the list was read, the first bad rows, by their lines, and how many more there are."""
    for note in listed.reading().notes:
        echo_err(note)
    shown = bad.first()
    for fault in shown:
        echo_err(f"line {fault.line}: {fault.fault}")
    if bad.count > len(shown):
        echo_err(f"… and {bad.count - len(shown):,} more.")


def _sync(kept: BinaryIO | None) -> None:
    """Put a file of rejects on the disk. Raises OSError."""
    if kept is not None:
        kept.flush()
        os.fsync(kept.fileno())


def _report(summary: Summary, as_json: bool, dry_run: bool, rejects: Path | None) -> None:
    """Raises OperatorError when bad rows have prevented the import."""
    if summary.rejected and rejects is None:
        raise OperatorError(
            f"{summary.rejected:,} of {summary.read:,} rows can't be imported; nothing was stored."
            " Correct them, or store the others with --skip-bad FILE."
        )
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
@click.option("--status", type=PET_STATUS, help="Only animals of this status.")
@click.option("--category", type=INT64, metavar="N", help="Only animals of this category.")
@click.option(
    "--source-key",
    "key_name",
    metavar="COLUMN",
    callback=checked(check_key_column),
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
    if file.suffix.lower() == ".xlsx":
        raise click.UsageError("A list is written as CSV or JSON lines: end its name with .csv or .jsonl.")
    chosen = kind or "csv" if to_terminal else _format_of(file.name, kind, SUFFIXES)
    query = PetQuery(SOURCE_KEYS_MAX, PetStatus(status) if status else None, category_id=category)

    async def write(store: Store, out: BinaryIO) -> None:
        async for piece in written_list(store.pets.page, store.stock.source_keys, query, chosen, key_name):
            out.write(piece)

    with whole_file(None if to_terminal else file) as kept:
        out = kept or sys.stdout.buffer
        read_store(session, lambda store: write(store, out))
        out.flush()
