"""Pages in a large store, and what a list waits for beside their readers."""

from __future__ import annotations

import argparse
import sys

from verification.benchmarks.capacity import tables
from verification.benchmarks.console import beside, pages
from verification.benchmarks.console.data import Size
from verification.benchmarks.interleaved import Plan
from verification.benchmarks.report import keep_section, publish

_KEPT = 20


def main() -> None:
    """Ends with 1 when a page is slower or heavier than it may be."""
    parser = argparse.ArgumentParser(prog="python -m verification.benchmarks.console", description=__doc__)
    parser.add_argument("groups", nargs="*", choices=("pages", "beside"), default=["pages"])
    parser.add_argument("--animals", type=int, default=1_000_000, help="default 1000000")
    parser.add_argument("--accounts", type=int, default=100_000, help="default 100000")
    parser.add_argument("--orders", type=int, default=100_000, help="default 100000")
    parser.add_argument("--entries", type=int, default=1_000_000, help="of the journal (default 1000000)")
    parser.add_argument("--stores", nargs="+", default=["sqlite", "postgres"], help="default: both")
    parser.add_argument("--seconds", type=float, default=4.0, help="length of one turn (default 4)")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each (default 5)")
    parser.add_argument("--dry", action="store_true", help="leave verification/benchmarks/RESULTS.md alone")
    arguments = parser.parse_args()
    size = Size(arguments.animals, arguments.accounts, arguments.orders, arguments.entries)
    plan = Plan(arguments.seconds, arguments.rounds)
    command = "python -m verification.benchmarks.console " + " ".join(sys.argv[1:])
    over = 0
    for group in arguments.groups:
        if group == "pages":
            taken = pages.measure(size, arguments.stores)
            taken.sort(key=lambda page: page.p99_ms, reverse=True)
            over = sum(not page.within for page in taken)
            about = {"animals": size.animals, "accounts": size.accounts, "views": len(taken), "over": over}
            print(tables.of_measured(group, about | {"pages": taken}))
            if not arguments.dry:
                slowest = tables.of_measured("The slowest pages", about | {"pages": taken[:_KEPT]}).strip()
                keep_section("Pages of the console", command, slowest)
        else:
            rows = beside.measure(size, arguments.stores, plan)
            publish(rows, "Beside pages", command, keep=not arguments.dry)
    if over:
        sys.exit(f"{over} pages are over {pages.MAX_MS:.0f} ms (p99) or {pages.MAX_KB:.0f} kB.")


if __name__ == "__main__":
    main()
