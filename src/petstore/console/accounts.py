"""One account: its page with the use of 90 days, and the forms that add or change it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from starlette.responses import Response

from petstore.console import refusals
from petstore.console.charts import chart_of_use
from petstore.console.contacts import ContactBlock
from petstore.console.formats import ungrouped
from petstore.console.journal import history_of
from petstore.console.visit import INCOMPLETE_FORM, Faults, View, Visit, asks_again
from petstore.core.accounts import Account
from petstore.core.durations import DAY_MS
from petstore.core.errors import AccountExists, Conflict, Invalid, InvalidBody
from petstore.core.keys import ApiKey
from petstore.core.limits.plans import ENTERPRISE, LIMIT_COLUMNS, STANDARD_PLANS, WINDOWS, Plan, resolve_plan
from petstore.core.limits.quota import view
from petstore.core.limits.usage import every_day
from petstore.core.orders import OrderQuery
from petstore.core.people import Role
from petstore.core.values import read_int64

PLANS = [
    *((plan.name, f"{plan.name}: {', '.join(plan.phrases())}") for plan in STANDARD_PLANS.values()),
    (ENTERPRISE, f"{ENTERPRISE}: the numbers below"),
]
# The field and the label of each number of an enterprise plan.
LIMITS = [(column, f"Requests {window.words}") for column, window in zip(LIMIT_COLUMNS, WINDOWS, strict=True)]
# The newest keys of an account.
KEYS_READ = 200
_DAYS = 90
_ENDED_KEYS = 50
_ORDERS_SHOWN = 10
# The plan and the limits that a form was shown with: `free:60:1000`.
_SHOWN = re.compile("([a-z]{1,20})" + ":([0-9]{1,10})" * len(WINDOWS), re.ASCII)


async def show(visit: Visit) -> Response:
    account = await account_of(visit)
    report = await visit.store.usage.report(visit.now_ms, account.id, days=_DAYS)
    windows = view(report.windows, account.plan.limits, visit.now_ms)
    today = visit.now_ms // DAY_MS
    days = every_day(report.days, today, _DAYS, windows[-1].used)
    keys = (await visit.store.keys.of_account(str(account.id), newest=KEYS_READ))[::-1]
    ended = [key for key in keys if key.state(visit.now_ms) != "active"]
    history = await history_of(visit, "account", account.id)
    return visit.page(
        "account.html",
        account.name,
        account=account,
        customer=await visit.store.customers.of(account.id),
        windows=windows,
        today=days[0],
        chart=chart_of_use(days),
        keys=_working(keys, visit.now_ms),
        ended=ended[:_ENDED_KEYS],
        ended_count=len(ended),
        keys_read=KEYS_READ,
        has_more_keys=len(keys) == KEYS_READ,
        bans={ban.key_id: ban for ban in report.bans},
        webhooks=await visit.store.webhooks.of_account(account.id),
        mail=await _MAIL.block(visit, account.id),
        history=history,
        **await refusals.block(
            visit, account, keys, report.bans, windows, history, has_all_keys=len(keys) < KEYS_READ
        ),
    )


def _working(keys: Sequence[ApiKey], now_ms: int) -> list[ApiKey]:
    """The keys that are neither revoked nor expired."""
    return [key for key in keys if key.state(now_ms) == "active"]


async def account_of(visit: Visit) -> Account:
    """The account whose id is in the path. Raises NotFound."""
    return await visit.store.accounts.get(visit.id_of("account"))


async def ask_new(visit: Visit) -> Response:
    typed = visit.sent(plan=next(iter(STANDARD_PLANS)), **dict.fromkeys(("address", *LIMIT_COLUMNS), ""))
    return visit.page(
        "account_new.html",
        "Add an account",
        name=visit.typed("name"),
        typed=typed,
        plans=PLANS,
        limits=LIMITS,
    )


@asks_again(ask_new, Faults, Invalid, AccountExists, beside="name")
async def add(visit: Visit) -> Response:
    address = visit.typed("address")
    added = await visit.store.accounts.add(
        visit.typed("name"), _read_plan(visit), visit.actor, addresses=[address] if address else []
    )
    return visit.redirect(
        f"accounts/{added.id}", flash=f"Account {added.name} is added. Issue its first key below."
    )


async def ask_plan(visit: Visit) -> Response:
    account = await account_of(visit)
    plan = account.plan
    numbers = map(str, plan.limits) if plan.name == ENTERPRISE else [""] * len(LIMITS)
    report = await visit.store.usage.report(visit.now_ms, account.id, days=1)
    return visit.page(
        "account_plan.html",
        f"Change the plan of {account.name}",
        account=account,
        shown=":".join(map(str, (plan.name, *plan.limits))),
        typed=visit.sent(plan=plan.name, **dict(zip(LIMIT_COLUMNS, numbers, strict=True))),
        plans=PLANS,
        limits=LIMITS,
        windows=view(report.windows, plan.limits, visit.now_ms),
    )


@asks_again(ask_plan, Faults, Invalid, Conflict)
async def set_plan(visit: Visit) -> Response:
    account = await account_of(visit)
    shown = _SHOWN.fullmatch(visit.form.get("was", ""))
    if shown is None:
        raise InvalidBody(INCOMPLETE_FORM)
    name, *limits = shown.groups()
    expected, plan = Plan(name, tuple(map(int, limits))), _read_plan(visit)
    await visit.store.accounts.set_plan(str(account.id), plan, visit.actor, expected=expected)
    return _shown_again(visit, account, f"{account.name} has the plan {plan.name}, from its next request on.")


def _read_plan(visit: Visit) -> Plan:
    """The plan in the form: its name and, for enterprise, the agreed numbers. Raises Faults and Invalid."""
    limits, faults = [], {}
    for column in LIMIT_COLUMNS:
        text = visit.typed(column)
        limits.append(read_int64(ungrouped(text)) if text else None)
        if text and limits[-1] is None:
            faults[column] = "Write a whole number, such as 5,000."
    if faults:
        raise Faults(faults)
    return resolve_plan(visit.form.get("plan", ""), *limits)


async def ask_name(visit: Visit) -> Response:
    account = await account_of(visit)
    name, title = visit.sent(name=account.name)["name"], f"Rename {account.name}"
    return visit.page("account_rename.html", title, account=account, name=name)


@asks_again(ask_name, Invalid, Conflict, beside="name")
async def rename(visit: Visit) -> Response:
    account, shown = await account_of(visit), visit.form.get("was", "")
    if not shown:
        raise InvalidBody(INCOMPLETE_FORM)
    name, actor = visit.typed("name"), visit.actor
    renamed = await visit.store.accounts.rename(str(account.id), name, actor, expected=shown)
    return _shown_again(visit, account, f"The account is called {renamed.name}.")


async def ask_suspension(visit: Visit) -> Response:
    account = await account_of(visit)
    title, (working, more) = f"Suspend {account.name}", await _working_keys(visit, account)
    return visit.page("account_suspend.html", title, account=account, working=working, more=more)


@asks_again(ask_suspension, Conflict)
async def suspend(visit: Visit) -> Response:
    account = await account_of(visit)
    await visit.store.accounts.suspend(str(account.id), visit.actor)
    flash = f"{account.name} is suspended: its keys are refused until you resume it."
    return _shown_again(visit, account, flash)


async def resume(visit: Visit) -> Response:
    account = await account_of(visit)
    await visit.store.accounts.resume(str(account.id), visit.actor)
    return _shown_again(visit, account, f"{account.name} is active again, with the same keys.")


async def ask_closing(visit: Visit) -> Response:
    account = await account_of(visit)
    orders = await visit.store.orders.page(OrderQuery(account.id, _ORDERS_SHOWN, open_only=True))
    working, more = await _working_keys(visit, account)
    return visit.page(
        "account_close.html",
        f"Close {account.name}",
        account=account,
        working=working,
        more=more,
        orders=orders.orders,
        has_more_orders=orders.has_more,
    )


async def _working_keys(visit: Visit, account: Account) -> tuple[int, bool]:
    """How many of the newest keys work, and whether there may be older ones that do."""
    keys = await visit.store.keys.of_account(str(account.id), newest=KEYS_READ)
    return len(_working(keys, visit.now_ms)), len(keys) == KEYS_READ


async def close(visit: Visit) -> Response:
    account = await account_of(visit)
    await visit.store.accounts.close(str(account.id), visit.actor)
    return _shown_again(visit, account, f"{account.name} is closed, and its keys are revoked.")


def _shown_again(visit: Visit, account: Account, flash: str) -> Response:
    return visit.redirect(f"accounts/{account.id}", flash=flash)


_MAIL = ContactBlock(
    "account", "/accounts/{account_id}", Role.OPERATOR, lambda visit: str(visit.id_of("account")), show
)
VIEWS = [
    View("GET", "/accounts/new", ask_new, Role.OPERATOR),
    View("POST", "/accounts/new", add, Role.OPERATOR),
    View("GET", "/accounts/{account_id}", show),
    *_MAIL.views(),
    *(
        View(method, f"/accounts/{{account_id}}/{action}", handler, Role.OPERATOR)
        for method, action, handler in (
            ("GET", "plan", ask_plan),
            ("POST", "plan", set_plan),
            ("GET", "rename", ask_name),
            ("POST", "rename", rename),
            ("GET", "suspend", ask_suspension),
            ("POST", "suspend", suspend),
            ("POST", "resume", resume),
            ("GET", "close", ask_closing),
            ("POST", "close", close),
        )
    ),
]
