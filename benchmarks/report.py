"""Results: a table on the terminal, JSON beside it, and a dated section appended to RESULTS.md."""

from __future__ import annotations

from pathlib import Path

import msgspec

from benchmarks.machine import describe

FOLDER = Path(__file__).parent


class Row(msgspec.Struct, frozen=True):
    """One measured value. `ratio` is to the row named in `over`, from the same interleaved run."""

    group: str
    name: str
    value: float
    unit: str
    ratio: float | None = None
    over: str = ""
    target: str = ""


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:,.3g}"


def table(rows: list[Row]) -> str:
    """A Markdown table, with the columns in line."""
    cells = [["group", "row", "value", "unit", "ratio", "to", "target"]]
    cells += [
        [
            row.group,
            row.name,
            _number(row.value),
            row.unit,
            "" if row.ratio is None else f"{row.ratio:.3g}",
            row.over,
            row.target,
        ]
        for row in rows
    ]
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |"
        for line in cells
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def publish(rows: list[Row], command: str, *, keep: bool) -> None:
    """Print, write `last.json`, and with `keep` append to RESULTS.md."""
    about = describe()
    print(table(rows))
    (FOLDER / "last.json").write_bytes(
        msgspec.json.format(msgspec.json.encode({"about": about, "command": command, "rows": rows}))
    )
    if not keep:
        return
    title = f"\n## {about['date']}, commit {about['commit']}\n\n"
    facts = f"`{command}` on {about['machine']}, Python {about['python']}.\n\n"
    with (FOLDER / "RESULTS.md").open("a", encoding="utf-8") as results:
        results.write(title + facts + table(rows) + "\n")
