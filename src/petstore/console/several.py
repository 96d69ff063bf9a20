"""One action for the chosen rows of a list. Each row is decided on its own, in a transaction of its own.

The macro `choose` of templates/parts.html has the form. A checkbox is named `row-` with the row's identifier;
its value is the row's version: what the row showed. An action raises for a row of another version.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping

import msgspec
from msgspec import field
from starlette.responses import Response

from petstore.console.visit import INCOMPLETE_FORM, Question, Visit
from petstore.core.digests import digest
from petstore.core.errors import Invalid, InvalidBody, PetstoreError
from petstore.core.values import read_int64

ROWS_MAX = 50
_ROW = "row-"
_BACK = re.compile(r"[A-Za-z0-9/_-]*(\?[!-~]*)?", re.ASCII)
_VERSION_CHARACTERS = 16
# Changes one row by its identifier and version; the row's new version if the change can be undone, else "".
Act = Callable[[int, str], Awaitable[str]]


class Action(msgspec.Struct, frozen=True):
    """A button. `warning`: it asks first, with this text."""

    name: str
    label: str
    warning: str = ""


class Rows(msgspec.Struct, frozen=True):
    """A kind of rows. `page` is the page of one of them. `begin` gives what an action does to a row and what
    the row is then, such as `sold`; it raises Invalid for the fields beside the buttons."""

    noun: str
    nouns: str
    page: str
    actions: tuple[Action, ...] = ()
    begin: Callable[[Visit, str], Awaitable[tuple[Act, str]]] | None = None
    subject: str = ""  # in the journal, where changes can be undone

    def phrase(self, ids: Collection[int]) -> str:
        """The rows in a sentence: `Order 5`, or `2 orders`."""
        return f"{self.noun} {next(iter(ids))}" if len(ids) == 1 else f"{len(ids)} {self.nouns}"


class RowsReport(msgspec.Struct):
    """The rows that were changed, and for each other one the reason, or its version and a question.

    `undo` has new versions.
    """

    done: list[int] = field(default_factory=list)
    refused: list[tuple[int, str]] = field(default_factory=list)
    asked: list[tuple[int, str, str]] = field(default_factory=list)
    undo: dict[int, str] = field(default_factory=dict)


def version_of(*values: object) -> str:
    """A text that differs where the values do."""
    return digest(msgspec.json.encode(values)).hex()[:_VERSION_CHARACTERS]


async def act(visit: Visit, rows: Rows) -> Response:
    """Carry out the button's action on the chosen rows, or on the one row that has the button."""
    name, chosen = _read(visit)
    action = next((each for each in rows.actions if each.name == name), None)
    if action is None or rows.begin is None:
        raise InvalidBody(INCOMPLETE_FORM)
    if not chosen:
        return _refuse(visit, "Choose rows first.")
    try:
        change, state = await rows.begin(visit, name)
    except Invalid as error:
        return _refuse(visit, error.message)
    if action.warning and not visit.form.get("sure"):
        title = f"{action.label.rstrip('…')}: {rows.phrase(chosen)}?"
        return visit.page(
            "several_ask.html", title, rows=rows, action=action, chosen=chosen, back=back_of(visit)
        )
    return answer(visit, rows, await carry_out(chosen, change), state, back_of(visit))


def _read(visit: Visit) -> tuple[str, dict[int, str]]:
    """The action's name, and the chosen rows with their versions. Raises InvalidBody."""
    if one := visit.form.get("one"):
        name, number, version = [*one.split(" "), "", ""][:3]
        return name, read_rows({_ROW + number: version}, _ROW)
    return visit.form.get("do", ""), read_rows(visit.form, _ROW)


def read_rows(form: Mapping[str, str], prefix: str) -> dict[int, str]:
    """The fields with this prefix: identifiers with versions. Raises InvalidBody."""
    rows: dict[int, str] = {}
    for name, version in form.items():
        if name.startswith(prefix):
            row_id = read_int64(name.removeprefix(prefix))
            if row_id is None or len(rows) == ROWS_MAX:
                raise InvalidBody(INCOMPLETE_FORM)
            rows[row_id] = version
    return rows


async def carry_out(rows: Mapping[int, str], change: Act) -> RowsReport:
    """Change one row after the other. Stops when the store does not answer."""
    report, is_away = RowsReport(), False
    for row_id, shown in rows.items():
        if is_away:
            report.refused.append((row_id, "Not tried: the store did not answer."))
            continue
        try:
            version = await change(row_id, shown)
        except Question as question:
            report.asked.append((row_id, shown, question.message))
        except PetstoreError as error:
            report.refused.append((row_id, error.public_message))
            is_away = error.status >= 500
        else:
            report.done.append(row_id)
            report.undo |= {row_id: version} if version else {}
    return report


def answer(visit: Visit, rows: Rows, report: RowsReport, state: str, back: str) -> Response:
    """Lead back with a message; if a row was refused or asks something, the report page."""
    undo = [undo_mark(rows.subject, row_id, version) for row_id, version in report.undo.items()]
    if report.refused or report.asked:
        return _report(visit, rows, report, state, back, undo)
    verb = "is" if len(report.done) == 1 else "are"
    return visit.redirect(back, flash=f"{rows.phrase(report.done)} {verb} {state}.", undo=undo)


def undo_mark(subject: str, row_id: int, version: str) -> str:
    """What Visit.redirect takes: the row, and its version after the change."""
    return f"{subject}-{row_id}.{version}"


def _report(
    visit: Visit, rows: Rows, report: RowsReport, state: str, back: str, undo: Iterable[str]
) -> Response:
    done, others = len(report.done), len(report.refused) + len(report.asked)
    title = f"{done} {state}, {others} not" if done else "Nothing was changed"
    if others == len(report.asked) and not done:
        title = "Are you sure?"
    return visit.page(
        "several.html",
        title,
        200 if done else 409,
        rows=rows,
        report=report,
        name=_read(visit)[0],
        state=state,
        undo=list(undo),
        back=back,
    )


def _refuse(visit: Visit, message: str) -> Response:
    """Nothing could be tried."""
    return visit.page(
        "several.html", "Nothing was changed", 400, report=None, fault=message, undo=[], back=back_of(visit)
    )


def back_of(visit: Visit) -> str:
    """The page that has the form, which its field `back` names. Raises InvalidBody."""
    back = visit.form.get("back", "")
    if _BACK.fullmatch(back) is None:
        raise InvalidBody(INCOMPLETE_FORM)
    return back
