"""The list of accounts: by name, or those with words in their names."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace
from starlette.responses import Response

from petstore.console.formats import choose
from petstore.console.lists import RowPage, find_matches, links, written
from petstore.console.visit import Faults, View, Visit, read_query_id
from petstore.core.accounts import STATES, AccountQuery, AccountUse
from petstore.core.limits.plans import PLAN_NAMES
from petstore.core.search import SearchKind
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
    found, count = RowPage[AccountUse](is_first=not after), ""
    try:
        query = read_search(asked, _ROWS, after)
        found = await find_accounts(visit, query)
        counted = None if query.search else await visit.store.accounts.count(query)
        count = "" if counted is None else written(counted)
    except Faults as error:
        visit.refuse(error)
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
        **links("accounts", asked, found),
    )


def read_search(asked: Mapping[str, str], limit: int, after: str) -> AccountQuery:
    """Raises Faults."""
    faults = {}
    if asked["state"] and asked["state"] not in STATES:
        faults["state"] = choose(STATES)
    if asked["plan"] and asked["plan"] not in PLAN_NAMES:
        faults["plan"] = choose(PLAN_NAMES)
    if faults:
        raise Faults(faults)
    return AccountQuery(limit, asked["q"], asked["state"] or None, asked["plan"] or None, after)


async def find_accounts(visit: Visit, asked: AccountQuery) -> RowPage[AccountUse]:
    """One page of those with all words of `search` in their names, the newest first; without words, by name.

    `after` is an identifier in a search. Raises InvalidParameter for another one.
    """
    accounts, now_ms, state, plan = visit.store.accounts, visit.now_ms, asked.state, asked.plan
    if not asked.search:
        page = await accounts.page(now_ms, asked)
        is_cut = bool(page.next_start) and len(page.accounts) < asked.limit
        return RowPage(page.accounts, not asked.after, next_start=page.next_start or "", is_cut=is_cut)

    async def read(ids: tuple[int, ...]) -> list[AccountUse]:
        return [
            use
            for use in await accounts.uses(now_ms, ids)
            if state in (None, use.account.state) and plan in (None, use.account.plan.name)
        ]

    async def beginning() -> list[AccountUse]:
        return (await accounts.page(now_ms, replace(asked, after=""))).accounts

    conditions = dict(_STATES.get(state or "", {})) | ({"plan": plan} if plan else {})
    after_id = read_query_id(asked.after)
    query = SearchQuery(SearchKind.ACCOUNTS, asked.search, asked.limit, after_id, conditions=conditions)
    return await find_matches(visit, query, read, beginning)


VIEWS = [View("GET", "/accounts", search)]
