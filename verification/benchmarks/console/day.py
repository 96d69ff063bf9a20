"""A day's work at the console in a real Chromium: what each task takes in clicks, keys and loads of pages.

The store is the demo's, and the person an operator at a desk. `before` is what the same tasks took at commit
a71b878, done by hand; a task that could not be done then, or can't now, has a dash.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Error, Page

from petstore.core.clock import SystemClock
from tests.support.browser import DESKTOP, running_browser
from tools.demo.making import make
from tools.demo.story import DAYS
from verification.benchmarks import servers
from verification.benchmarks.capacity import tables
from verification.benchmarks.console.hand import Hand
from verification.benchmarks.console.tasks import TASKS, Day, Task
from verification.benchmarks.report import keep_section

_PASSWORD = "a dog, a cat and a bird"
_COMMAND = "python -m verification.benchmarks.console.day"


class Taken:
    """What a task took; `fault` says why it was not done."""

    def __init__(self, task: Task, hand: Hand, fault: str) -> None:
        self.task = task
        self.counts = None if fault else (hand.clicks, hand.keys, hand.loads)
        self.fault = fault

    @property
    def is_within(self) -> bool:
        return self.counts is not None and (self.task.aim is None or self.counts[0] <= self.task.aim)


@contextmanager
def opened_day() -> Iterator[Day]:
    """A store, a server and a browser, with the operator signed in."""
    with tempfile.TemporaryDirectory() as temporary:
        database = Path(temporary) / "petstore.db"
        settings = {"PETSTORE_DATABASE_URL": f"sqlite:///{database}"}
        story, text = asyncio.run(make(settings, 1, DAYS, SystemClock().now_ms(), lambda: None))
        link = re.findall(r"(/console/link/\S+)", text)[-1]  # the operator's
        with servers.petstore("console", database, settings={"console": "on"}) as server:
            base = f"http://127.0.0.1:{server.port}"
            with running_browser() as browser:
                page = browser.new_page(viewport=DESKTOP)
                _come_in(page, base + link)
                yield Day(Hand(page), base, story.keys)


def _come_in(page: Page, link: str) -> None:
    page.goto(link)
    page.get_by_label("New password").fill(_PASSWORD)
    page.locator("[name=again]").fill(_PASSWORD)
    page.get_by_role("button", name="Set the password and sign in").click()
    page.get_by_role("button", name="Sign out").wait_for()


def measure(day: Day, tasks: tuple[Task, ...] = TASKS) -> Iterator[Taken]:
    """One after the other: some need what those before have left."""
    for task in tasks:
        fault = ""
        try:
            task.work(day)
        except (AssertionError, Error) as error:
            fault = str(error).partition("\n")[0] or "the result is not there"
        yield Taken(task, day.hand, fault)


def table(measured: list[Taken]) -> str:
    """Clicks, keys and loads of each task, before and now."""
    rows = []
    for taken in measured:
        aim = "" if taken.task.aim is None else f"≤{taken.task.aim}"
        rows.append((taken.task.name, _text(taken.task.before), _text(taken.counts), aim))
    return tables.markdown(("clicks / keys / loads", "before", "now", "aim"), rows).strip()


def _text(counts: tuple[int, int, int] | None) -> str:
    return "-" if counts is None else " / ".join(map(str, counts))


def main() -> None:
    """Ends with 1 when a task is not done, or takes more clicks than it may."""
    parser = argparse.ArgumentParser(prog=_COMMAND, description=__doc__)
    parser.add_argument("--dry", action="store_true", help="leave verification/benchmarks/RESULTS.md alone")
    arguments = parser.parse_args()
    with opened_day() as day:
        measured = list(measure(day))
    print(table(measured))
    if not arguments.dry and all(taken.counts for taken in measured):
        keep_section("A day at the console", _COMMAND, table(measured))
    late = [taken for taken in measured if not taken.is_within]
    for taken in late:
        print(f"{taken.task.name}: {taken.fault or 'too many clicks'}", file=sys.stderr)
    if late:
        sys.exit(1)


if __name__ == "__main__":
    main()
