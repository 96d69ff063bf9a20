"""The list of accounts: by name, or those with words in their names."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from starlette.responses import Response

from petstore.console.formats import choose
from petstore.console.visit import Faults, View, Visit, address
from petstore.core.accounts import STATES, AccountQuery, AccountUse
from petstore.core.limits.plans import PLAN_NAMES
from petstore.core.search import Kind, id_in
from petstore.transactions.search import SearchQuery

_ROWS = 50
# The columns of the times at which a state begins, as transactions.search.SearchQuery takes them.
_STATES: Mapping[str, Mapping[str, object]] = {
    "active": {"suspended_at_ms": None, "closed_at_ms": None},
    "suspended": {"suspended_at_ms": True, "closed_at_ms": None},
    "closed": {"closed_at_ms": True},
}


class FoundAccounts(msgspec.Struct, frozen=True):
    """A page of accounts, and where the next one begins: a name in the list of all, else an identifier.

    `is_cut`, `is_late`: as of transactions.search.Found. Without `is_built` they are those whose names begin
    with the text.
    """

    accounts: list[AccountUse] = []
    further: str = ""
    is_cut: bool = False
    is_late: bool = False
    is_built: bool = True


async def search(visit: Visit) -> Response:
    asked, after = visit.asked("q", "state", "plan"), visit.query.get("after", "")
    found, error = FoundAccounts(), faults_of(asked)
    if error is None:
        state, plan = asked["state"], asked["plan"]
        if asked["q"]:
            found = await find_accounts(visit, asked["q"], _ROWS, visit.place("after"), state, plan)
        else:
            found = await _list(visit, AccountQuery(_ROWS, "", state or None, plan or None, after))
    return visit.page(
        "accounts.html",
        "Accounts",
        error=error,
        fragment="rows",
        asked=asked,
        found=found,
        first=address("accounts", asked) if after else "",
        next=address("accounts", {**asked, "after": found.further}) if found.further else "",
        csv=address("accounts.csv", asked) if found.accounts else "",
        clear="accounts" if any(asked.values()) else "",
        states=[(state, state) for state in STATES],
        plans=[(plan, plan) for plan in PLAN_NAMES],
    )


def faults_of(asked: Mapping[str, str]) -> Faults | None:
    faults = {}
    if asked["state"] and asked["state"] not in STATES:
        faults["state"] = choose(STATES)
    if asked["plan"] and asked["plan"] not in PLAN_NAMES:
        faults["plan"] = choose(PLAN_NAMES)
    return Faults(faults) if faults else None


async def _list(visit: Visit, query: AccountQuery) -> FoundAccounts:
    page = await visit.store.accounts.page(query, visit.now_ms)
    return FoundAccounts(page.accounts, page.after or "", bool(page.after) and len(page.accounts) < _ROWS)


async def find_accounts(
    visit: Visit, text: str, limit: int, after_id: int = 0, state: str = "", plan: str = ""
) -> FoundAccounts:
    """One page of those with the words in their names, the newest first. An account whose number is the text
    comes first."""
    conditions = dict(_STATES.get(state, {})) | ({"plan": plan} if plan else {})
    found = await visit.store.search.find(
        SearchQuery(Kind.ACCOUNTS, text, limit, after_id, conditions=conditions)
    )
    if found is None:
        query = AccountQuery(limit, text, state or None, plan or None)
        return FoundAccounts((await visit.store.accounts.page(query, visit.now_ms)).accounts, is_built=False)
    by_number = () if after_id else tuple(filter(None, [id_in(text)]))
    ids = dict.fromkeys((*by_number, *found.ids))
    uses = {use.account.id: use for use in await visit.store.accounts.uses(tuple(ids), visit.now_ms)}
    listed = [
        uses[id_]
        for id_ in ids
        if id_ in uses
        and state in ("", uses[id_].account.state)
        and plan in ("", uses[id_].account.plan.name)
    ]
    return FoundAccounts(listed, str(found.further or ""), found.is_cut, found.is_late)


VIEWS = [View("GET", "/accounts", search)]
