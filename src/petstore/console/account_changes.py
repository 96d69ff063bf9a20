"""Changes of an account: plan, name, suspension, closing. Each has a page of its own, for operators."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from petstore.console.account_forms import (
    PLANS,
    TypedPlan,
    read_plan,
    read_shown_plan,
    shown_plan,
    typed_plan_of,
)
from petstore.console.accounts import KEYS_READ, account_of, working_keys
from petstore.console.visit import INCOMPLETE_FORM, View, Visit
from petstore.core.accounts import Account
from petstore.core.errors import Conflict, Invalid, InvalidBody
from petstore.core.limits.quota import view
from petstore.core.orders import Order, OrderQuery
from petstore.core.people import Role
from petstore.transactions.store import Parts

_ORDERS_SHOWN = 10


class AccountChangePages:
    """The pages below `/accounts/2`."""

    def __init__(self, store: Parts) -> None:
        self._store = store

    def views(self) -> list[View]:
        pages = {
            ("GET", "plan"): self.ask_plan,
            ("POST", "plan"): self.set_plan,
            ("GET", "rename"): self.ask_name,
            ("POST", "rename"): self.rename,
            ("GET", "suspend"): self.ask_suspension,
            ("POST", "suspend"): self.suspend,
            ("POST", "resume"): self.resume,
            ("GET", "close"): self.ask_closing,
            ("POST", "close"): self.close,
        }
        return [
            View(method, f"/accounts/{{account_id}}/{action}", handler, Role.OPERATOR)
            for (method, action), handler in pages.items()
        ]

    async def ask_plan(self, visit: Visit) -> Response:
        account = await self._find(visit)
        return await self._plan_page(visit, account, typed_plan_of(account))

    async def set_plan(self, visit: Visit) -> Response:
        account = await self._find(visit)
        typed, plan = read_plan(visit.form)
        shown = read_shown_plan(visit.form)
        if plan is None:
            return await self._plan_page(visit, account, typed, 400)
        try:
            await self._store.accounts.set_plan(str(account.id), plan, visit.actor, expected=shown)
        except Conflict as error:
            return await self._plan_page(visit, account, typed, 409, error.message)
        flash = f"{account.name} has the plan {plan.name}, from its next request on."
        return visit.redirect(f"accounts/{account.id}", flash=flash)

    async def ask_name(self, visit: Visit) -> Response:
        account = await self._find(visit)
        return self._page(visit, "account_rename.html", "Rename", account, name=account.name)

    async def rename(self, visit: Visit) -> Response:
        account, name = await self._find(visit), visit.form.get("name", "").strip()
        shown = visit.form.get("was", "")
        if not shown:
            raise InvalidBody(INCOMPLETE_FORM)
        try:
            renamed = await self._store.accounts.rename(str(account.id), name, visit.actor, expected=shown)
        except (Invalid, Conflict) as error:
            page = "account_rename.html"
            return self._page(visit, page, "Rename", account, error.status, error.message, name=name)
        return visit.redirect(f"accounts/{account.id}", flash=f"The account is called {renamed.name}.")

    async def ask_suspension(self, visit: Visit) -> Response:
        return await self._suspension_page(visit, await self._find(visit))

    async def suspend(self, visit: Visit) -> Response:
        account = await self._find(visit)
        try:
            await self._store.accounts.suspend(str(account.id), visit.actor)
        except Conflict as error:
            return await self._suspension_page(visit, account, 409, error.message)
        flash = f"{account.name} is suspended: its keys are refused until you resume it."
        return visit.redirect(f"accounts/{account.id}", flash=flash)

    async def resume(self, visit: Visit) -> Response:
        account = await self._find(visit)
        await self._store.accounts.resume(str(account.id), visit.actor)
        return visit.redirect(
            f"accounts/{account.id}", flash=f"{account.name} is active again, with the same keys."
        )

    async def ask_closing(self, visit: Visit) -> Response:
        account = await self._find(visit)
        orders, has_more = await self._open_orders(account)
        working, more = await self._working_keys(visit, account)
        return self._page(
            visit,
            "account_close.html",
            "Close",
            account,
            working=working,
            more=more,
            orders=orders,
            has_more_orders=has_more,
        )

    async def close(self, visit: Visit) -> Response:
        account = await self._find(visit)
        await self._store.accounts.close(str(account.id), visit.actor)
        return visit.redirect(
            f"accounts/{account.id}", flash=f"{account.name} is closed, and its keys are revoked."
        )

    async def _find(self, visit: Visit) -> Account:
        return await account_of(visit)

    async def _working_keys(self, visit: Visit, account: Account) -> tuple[int, bool]:
        """How many of the newest keys work, and whether there may be older ones that do."""
        keys = await self._store.keys.keys(str(account.id), newest=KEYS_READ)
        return len(working_keys(keys, visit.now_ms)), len(keys) == KEYS_READ

    async def _open_orders(self, account: Account) -> tuple[list[Order], bool]:
        """The first open orders, and whether there are more."""
        page = await self._store.orders.page(OrderQuery(account.id, _ORDERS_SHOWN, open_only=True))
        return page.orders, page.has_more

    async def _plan_page(
        self, visit: Visit, account: Account, typed: TypedPlan, status: int = 200, fault: str = ""
    ) -> Response:
        report = await self._store.usage.report(account.id, visit.now_ms, days=1)
        windows = view(report.windows, account.plan.limits, visit.now_ms)
        return self._page(
            visit,
            "account_plan.html",
            "Change the plan of",
            account,
            status,
            fault,
            shown=shown_plan(account.plan),
            typed=typed,
            plans=PLANS,
            windows=windows,
        )

    async def _suspension_page(
        self, visit: Visit, account: Account, status: int = 200, fault: str = ""
    ) -> Response:
        working, more = await self._working_keys(visit, account)
        page = "account_suspend.html"
        return self._page(visit, page, "Suspend", account, status, fault, working=working, more=more)

    def _page(
        self,
        visit: Visit,
        template: str,
        verb: str,
        account: Account,
        status: int = 200,
        fault: str = "",
        **values: Any,
    ) -> Response:
        title = f"{verb} {account.name}"
        return visit.page(template, title, status, account=account, fault=fault, **values)
