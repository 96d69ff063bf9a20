"""The list of accounts: by name, or those with words in their names."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response

from petstore.console.formats import choose
from petstore.console.lists import Matches, Turned, find_matches, links, written
from petstore.console.visit import Faults, View, Visit
from petstore.core.accounts import STATES, AccountQuery, AccountUse
from petstore.core.limits.plans import PLAN_NAMES
from petstore.core.search import Kind
from petstore.transactions.search import SearchQuery

_ROWS = 50
# The columns of the times at which a state begins, as transactions.search.SearchQuery takes them.
_STATES: Mapping[str, Mapping[str, object]] = {
    "active": {"suspended_at_ms": None, "closed_at_ms": None},
    "suspended": {"suspended_at_ms": True, "closed_at_ms": None},
    "closed": {"closed_at_ms": True},
}


async def search(visit: Visit) -> Response:
    asked, after = visit.asked("q", "state", "plan"), visit.query.get("after", "")
    found, count, error = Matches[AccountUse](), "", faults_of(asked)
    if error:
        visit.refuse(error)
    state, plan = asked["state"], asked["plan"]
    if error is None and asked["q"]:
        found = await find_accounts(visit, asked["q"], _ROWS, visit.place("after"), state, plan)
    elif error is None:
        query = AccountQuery(_ROWS, "", state or None, plan or None, after)
        page = await visit.store.accounts.page(query, visit.now_ms)
        found = Matches(page.accounts, page.after or "", bool(page.after) and len(page.accounts) < _ROWS)
        counted = await visit.store.accounts.count(query)
        count = "" if counted is None else written(counted)
    return visit.page(
        "accounts.html",
        "Accounts",
        fragment="rows",
        asked=asked,
        found=found,
        count=count,
        clear="accounts" if any(asked.values()) else "",
        states=[(state, state) for state in STATES],
        plans=[(plan, plan) for plan in PLAN_NAMES],
        **links("accounts", asked, Turned(found.rows, not after, following=found.further)),
    )


def faults_of(asked: Mapping[str, str]) -> Faults | None:
    faults = {}
    if asked["state"] and asked["state"] not in STATES:
        faults["state"] = choose(STATES)
    if asked["plan"] and asked["plan"] not in PLAN_NAMES:
        faults["plan"] = choose(PLAN_NAMES)
    return Faults(faults) if faults else None


async def find_accounts(
    visit: Visit, text: str, limit: int, after_id: int = 0, state: str = "", plan: str = ""
) -> Matches[AccountUse]:
    """One page of those with the words in their names, the newest first."""
    accounts, now_ms = visit.store.accounts, visit.now_ms

    async def read(ids: tuple[int, ...]) -> list[AccountUse]:
        return [
            use
            for use in await accounts.uses(ids, now_ms)
            if state in ("", use.account.state) and plan in ("", use.account.plan.name)
        ]

    async def beginning() -> list[AccountUse]:
        page = await accounts.page(AccountQuery(limit, text, state or None, plan or None), now_ms)
        return page.accounts

    conditions = dict(_STATES.get(state, {})) | ({"plan": plan} if plan else {})
    query = SearchQuery(Kind.ACCOUNTS, text, limit, after_id, conditions=conditions)
    return await find_matches(visit, query, read, beginning)


VIEWS = [View("GET", "/accounts", search)]
