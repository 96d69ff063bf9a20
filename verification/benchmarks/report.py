"""Results: a table on the terminal, JSON beside it, and a section of RESULTS.md for each choice of groups."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path

import msgspec

from verification.benchmarks.machine import describe

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


def over_one(
    group: str, taken: Mapping[str, float], base: str, over: str, targets: Mapping[str, str] | None = None
) -> list[Row]:
    """Rates, with their ratios to the one named `base`, which is shown as `over`."""
    return [
        Row(group, name, value, "requests/s", value / taken[base], over, (targets or {}).get(name, ""))
        for name, value in taken.items()
    ]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:,.3g}"


def table(rows: list[Row]) -> str:
    """Columns of plain text under the name of each group. Without a unit: requests a second."""
    cells = [
        [
            row.name,
            _number(row.value) + ("" if row.unit == "requests/s" else f" {row.unit}"),
            "" if row.ratio is None else f"{row.ratio:.3g}",
            row.target.replace(">= ", "≥").replace("<= ", "≤"),
        ]
        for row in rows
    ]
    widths = [max(len(line[column]) for line in cells) for column in range(4)]
    lines = []
    for group, members in groupby(zip(rows, cells, strict=True), lambda pair: pair[0].group):
        pairs = list(members)
        over = next((row.over for row, _ in pairs if row.over), "")
        lines.append(f"{group}, ratio: {over}" if over else group)
        for _, line in pairs:
            parts = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
            lines.append(f"  {'  '.join(parts)}".rstrip())
    return "\n".join(lines)


def replaced(results: str, title: str, text: str) -> str:
    """RESULTS.md with `text` under the heading `title`: in the place of its last one, else at the end."""
    section = f"## {title}\n\n{text}\n"
    old = re.search(rf"^## {re.escape(title)}\n.*?(?=^## |\Z)", results, re.M | re.S)
    if old is None:
        return f"{results}\n{section}"
    rest = results[old.end() :]
    return results[: old.start()] + section + (f"\n{rest}" if rest else "")


def publish(rows: list[Row], title: str, command: str, *, keep: bool) -> None:
    """Print, write `last.json`, and with `keep` replace the section `title` of RESULTS.md."""
    about = describe()
    print(table(rows))
    (FOLDER / "last.json").write_bytes(
        msgspec.json.format(msgspec.json.encode({"about": about, "command": command, "rows": rows}))
    )
    if keep:
        keep_section(title, command, table(rows))


def keep_section(title: str, command: str, text: str) -> None:
    """Replace the section `title` of RESULTS.md by a table and what it was measured with."""
    about = describe()
    when = f"commit {about['commit']}, {about['date']}"
    facts = f"`{command}` at {when}, on {about['machine']}, Python {about['python']}."
    file = FOLDER / "RESULTS.md"
    section = f"{facts}\n\n```\n{text}\n```"
    file.write_text(replaced(file.read_text("utf-8"), title, section), "utf-8")
