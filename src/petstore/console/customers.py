"""What staff know of the customer behind an account: a block of its page, and a form."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import asdict
from starlette.responses import Response

from petstore.console.accounts import account_of
from petstore.console.formats import sentence
from petstore.console.visit import INCOMPLETE_FORM, Faults, View, Visit, asks_again
from petstore.core.customers import FIELDS, NOBODY, Customer, CustomerChangedMeanwhile
from petstore.core.errors import Conflict, InvalidBody
from petstore.core.fields import lines_of
from petstore.core.people import Role


async def ask(
    visit: Visit,
    before: Customer | None = None,
    typed: Mapping[str, str | None] | None = None,
) -> Response:
    """The form, with `typed` in its fields. `before` is what it showed, or what a colleague saved since."""
    account = await account_of(visit)
    before = before or await visit.store.customers.of(account.id)
    return visit.page(
        "customer.html",
        f"Customer of {account.name}",
        account=account,
        before=before,
        typed=typed or visit.form or asdict(before),
        is_changed=isinstance(visit.error, CustomerChangedMeanwhile),
    )


@asks_again(ask, Conflict)
async def save(visit: Visit) -> Response:
    account = await account_of(visit)
    if not all(f"was_{each.name}" in visit.form for each in FIELDS):
        raise InvalidBody(INCOMPLETE_FORM)
    shown, wanted = _read(visit, "was_"), _read(visit)
    if faults := _faults_of(wanted):
        visit.refuse(Faults(faults))
        return await ask(visit, shown)
    try:
        await visit.store.customers.set(str(account.id), wanted, visit.actor, expected=shown)
    except CustomerChangedMeanwhile as error:
        old, current = asdict(shown), asdict(error.current)
        changed = {name: text for name, text in asdict(wanted).items() if text != old[name]}
        visit.refuse(error)
        return await ask(visit, error.current, current | changed)
    flash = "The customer's data are removed." if wanted == NOBODY else "The customer is saved."
    return visit.redirect(f"accounts/{account.id}", flash=flash)


def _read(visit: Visit, prefix: str = "") -> Customer:
    """The customer as typed, but for white space at the ends, whether it keeps the rules or not."""
    return Customer(*[lines_of(visit.form.get(prefix + each.name, "")).strip() or None for each in FIELDS])


def _faults_of(wanted: Customer) -> dict[str, str]:
    """What is wrong with a customer's fields, by the field's name."""
    given = [(each, text) for each in FIELDS if (text := getattr(wanted, each.name)) is not None]
    found = {each.name: each.text.fault(text) for each, text in given if each.text is not None}
    return {name: sentence(fault) for name, fault in found.items() if fault is not None}


VIEWS = [
    View("GET", "/accounts/{account_id}/customer", ask, Role.STAFF),
    View("POST", "/accounts/{account_id}/customer", save, Role.STAFF),
]
