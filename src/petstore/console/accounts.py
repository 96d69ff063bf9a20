"""Pages of accounts: search, show with the use of 90 days, add. Changes: account_changes.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from starlette.responses import Response

from petstore.console.account_forms import PLANS, TypedPlan, read_plan
from petstore.console.formats import choose
from petstore.console.history import history_of
from petstore.console.visit import View, Visit, address
from petstore.core.accounts import STATES, Account, AccountPage, AccountQuery, can_begin_name
from petstore.core.durations import DAY_MS, DAY_SECONDS
from petstore.core.errors import AccountExists, Invalid
from petstore.core.journal import About
from petstore.core.keys import ApiKey
from petstore.core.limits.plans import PLAN_NAMES
from petstore.core.limits.quota import view
from petstore.core.limits.usage import DailyUsage, every_day
from petstore.core.people import Role
from petstore.transactions.store import Parts

_ROWS = 50
_DAYS = 90
_ENDED_KEYS = 50
# The newest keys of an account.
KEYS_READ = 200


class AccountPages:
    """`/accounts`, `/accounts/new` and `/accounts/2`."""

    def __init__(self, store: Parts) -> None:
        self._store = store

    def views(self) -> list[View]:
        return [
            View("GET", "/accounts", self.search),
            View("GET", "/accounts/new", self.new, Role.OPERATOR),
            View("POST", "/accounts/new", self.add, Role.OPERATOR),
            View("GET", "/accounts/{account_id}", self.show),
        ]

    async def search(self, visit: Visit) -> Response:
        asked = visit.asked("q", "state", "plan")
        after = visit.query.get("after", "")
        faults = _faults_of(asked)
        page = AccountPage([], None)
        if not faults:
            query = AccountQuery(_ROWS, asked["q"], asked["state"] or None, asked["plan"] or None, after)
            page = await self._store.accounts.page(query, visit.now_ms)
        return visit.page(
            "accounts.html",
            "Accounts",
            400 if faults else 200,
            fragment="rows",
            asked=asked,
            faults=faults,
            accounts=page.accounts,
            stopped=page.after if page.after and len(page.accounts) < _ROWS else "",
            first=address("accounts", asked) if after else "",
            next=address("accounts", {**asked, "after": page.after}) if page.after else "",
            states=[(state, state) for state in STATES],
            plans=[(plan, plan) for plan in PLAN_NAMES],
        )

    async def new(self, visit: Visit) -> Response:
        return _new_page(visit, "", TypedPlan())

    async def add(self, visit: Visit) -> Response:
        name, (typed, plan) = visit.form.get("name", "").strip(), read_plan(visit.form)
        if plan is None:
            return _new_page(visit, name, typed, 400)
        try:
            added = await self._store.accounts.add(name, plan, visit.actor)
        except (Invalid, AccountExists) as error:
            return _new_page(visit, name, typed, error.status, error.message)
        return visit.redirect(
            f"accounts/{added.id}", flash=f"Account {added.name} is added. Issue its first key below."
        )

    async def show(self, visit: Visit) -> Response:
        account = await account_of(visit)
        reference = str(account.id)
        report = await self._store.usage.report(account.id, visit.now_ms, _DAYS)
        windows = view(report.windows, account.plan.limits, visit.now_ms)
        today = visit.now_ms // DAY_MS
        days = every_day(report.days, today, _DAYS, windows[-1].used)
        keys = (await self._store.keys.keys(reference, newest=KEYS_READ))[::-1]
        ended = [key for key in keys if key.state(visit.now_ms) != "active"]
        return visit.page(
            "account.html",
            account.name,
            account=account,
            windows=windows,
            days=days,
            chart=_chart_of(days),
            keys=working_keys(keys, visit.now_ms),
            ended=ended[:_ENDED_KEYS],
            ended_count=len(ended),
            keys_read=KEYS_READ,
            has_more_keys=len(keys) == KEYS_READ,
            bans={ban.key_id: ban for ban in report.bans},
            history=await history_of(self._store.journal, About("account", reference)),
        )


def _chart_of(days: Sequence[DailyUsage]) -> str:
    """JSON for static/usage.js, oldest first: Unix times in seconds, requests, refused, deprecated."""
    rows = [(each.day * DAY_SECONDS, each.requests, each.refused, each.deprecated) for each in days]
    return msgspec.json.encode(list(zip(*reversed(rows), strict=True))).decode()


def _faults_of(asked: Mapping[str, str]) -> dict[str, str]:
    faults = {}
    if not can_begin_name(asked["q"]):
        faults["q"] = (
            "Write the beginning of a name, or a number: letters, digits, dots, dashes, underscores."
        )
    if asked["state"] and asked["state"] not in STATES:
        faults["state"] = choose(STATES)
    if asked["plan"] and asked["plan"] not in PLAN_NAMES:
        faults["plan"] = choose(PLAN_NAMES)
    return faults


def _new_page(visit: Visit, name: str, typed: TypedPlan, status: int = 200, fault: str = "") -> Response:
    return visit.page(
        "account_new.html",
        "Add an account",
        status,
        name=name,
        name_fault=fault,
        typed=typed,
        plans=PLANS,
    )


async def account_of(visit: Visit) -> Account:
    """The account whose id is in the path. Raises NotFound."""
    return await visit.store.accounts.find(str(visit.id_of("account")))


def working_keys(keys: list[ApiKey], now_ms: int) -> list[ApiKey]:
    """The keys that are neither revoked nor expired."""
    return [key for key in keys if key.state(now_ms) == "active"]
