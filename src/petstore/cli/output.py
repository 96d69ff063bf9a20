"""Output of commands: JSON for programs, tables for people, times in UTC; colour only on a terminal.

A command describes each thing once, as a record with the members of its JSON; tables pick columns from it.
`rich` is imported only on a terminal; a pipe gets plain, aligned text.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TextIO

import click
import msgspec

from petstore.core.moments import iso_moment
from petstore.core.printable import printable

Record = Mapping[str, object]
# Heading -> the name of a record's member, or a function of the record.
Columns = Mapping[str, str | Callable[[Record], object]]

yes_option = click.option("--yes", is_flag=True, help="Do not ask, also on a terminal.")

_UNUSUAL = re.compile(r"[^ -~\n]")
_STYLES = {
    **dict.fromkeys(("active", "available", "approved"), "green"),
    **dict.fromkeys(("pending", "expired", "suspended", "failing", "placed"), "yellow"),
    **dict.fromkeys(("disabled", "closed", "revoked", "banned"), "red"),
    **dict.fromkeys(("sold", "delivered", "cancelled"), "dim"),
}


def asks(yes: bool) -> bool:
    """Whether to ask before a change for good: on a terminal, without --yes. Scripts are never asked."""
    return not yes and sys.stdin.isatty() and sys.stderr.isatty()


def confirm(question: str) -> None:
    """Ask on standard error. Raises ClickException unless the answer is yes."""
    if not click.confirm(printable(question), err=True):
        raise click.ClickException("Nothing was changed.")


class Moment:
    """A time in UTC until the year 9999: 2026-11-21T08:30:00.000Z in JSON, 2026-11-21 08:30:00Z as text."""

    def __init__(self, ms: int) -> None:
        self.iso = iso_moment(ms)

    def __str__(self) -> str:
        return f"{self.iso[:10]} {self.iso[11:19]}Z"


def moment(ms: int | None) -> Moment | None:
    """Milliseconds since the epoch for a record; None stays None."""
    return None if ms is None else Moment(ms)


def write_json(value: object, indent: int = 2) -> None:
    """Print a value as JSON, in UTF-8 on every terminal; unprintable characters are escaped. `indent` 0: as a
    line."""
    document = msgspec.json.encode(value, enc_hook=lambda moment: moment.iso)
    text = msgspec.json.format(document, indent=indent).decode("utf-8")
    click.echo(_UNUSUAL.sub(_escaped_in_json, text).encode("utf-8"))


def _escaped_in_json(match: re.Match[str]) -> str:
    return match[0] if match[0].isprintable() else json.dumps(match[0])[1:-1]


def write_line(text: str) -> None:
    click.echo(_printable_lines(text))


def echo_err(text: str) -> None:
    """Print a remark for people on standard error; standard output has the result alone.

    Where it can't be written, as into a log on a full disk, the command and its exit code are as they were.
    """
    try:
        click.echo(_printable_lines(text), err=True)
    except OSError:
        drop_unwritten(sys.stderr)


def drop_unwritten(stream: TextIO) -> None:
    """Drop what a stream could not take: at its end Python would write it again, and exit with 120."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _printable_lines(text: str) -> str:
    return "\n".join(map(printable, text.split("\n")))


def write_records(records: Sequence[Record], columns: Columns, as_json: bool, *, empty: str) -> None:
    """Print all records as JSON or as a table; without any, `empty` on standard error."""
    if as_json:
        write_json(records)
    elif records:
        write_table(records, columns)
    else:
        echo_err(empty)


def write_record(record: object, shown: Record | str, as_json: bool) -> None:
    """Print the record as JSON, or what is shown of it: a text, or fields, one a line."""
    if as_json:
        write_json(record)
    elif isinstance(shown, str):
        write_line(shown)
    else:
        write_fields(shown)


def print_once(what: str, record: Record, text: str, as_json: bool, *, remedy: str) -> None:
    """Print a secret, as JSON or alone. Raises ClickException when it can't be printed: nobody has it."""
    try:
        if as_json:
            write_json(record)
        else:
            click.echo(text)
    except OSError as error:
        fault = f"{what} could not be printed ({error.strerror}), so nobody has it:"
        raise click.ClickException(f"{fault} {remedy}") from error


def write_table(records: Sequence[Record], columns: Columns) -> None:
    """Print a line for each record under the headings; columns of numbers are right-aligned."""
    rows = [
        [column(record) if callable(column) else record[column] for column in columns.values()]
        for record in records
    ]
    numeric = [bool(rows) and all(isinstance(row[at], int) for row in rows) for at in range(len(columns))]
    cells = [[_text(value) for value in row] for row in rows]
    headings = list(columns)
    if not (sys.stdout.isatty() and _write_styled(headings, cells, numeric)):
        _write_plain(headings, cells, numeric)


def write_fields(fields: Record) -> None:
    width = max(map(len, fields))
    for name, value in fields.items():
        click.echo(f"{name:<{width}}  {_text(value)}")


def _text(value: object) -> str:
    return "-" if value is None else printable(str(value))


@contextmanager
def row_progress(what: str) -> Iterator[tuple[Callable[[int], None], Callable[[int], None]]]:
    """Two functions, for the total and for each number of rows done; they draw a bar on a terminal."""
    if not sys.stderr.isatty():
        yield (lambda _total: None), (lambda _rows: None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield (lambda total: bar.update(task, total=total)), (lambda rows: bar.advance(task, rows))


def _write_plain(columns: Sequence[str], cells: list[list[str]], numeric: list[bool]) -> None:
    lines = [list(columns), *cells]
    widths = [max(len(line[at]) for line in lines) for at in range(len(columns))]

    def aligned(line: list[str]) -> str:
        padded = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, numeric, strict=True)
        )
        return "  ".join(padded).rstrip()

    click.echo("\n".join(map(aligned, lines)))


def _write_styled(columns: Sequence[str], cells: list[list[str]], numeric: list[bool]) -> bool:
    """Print with colours; False, without printing, where they are unwanted (NO_COLOR, a dumb terminal)."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    if console.no_color or console.color_system is None:
        return False
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name, right in zip(columns, numeric, strict=True):
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    for line in cells:
        table.add_row(*(Text(cell, _STYLES.get(cell, "")) for cell in line))
    console.print(table)
    return True
