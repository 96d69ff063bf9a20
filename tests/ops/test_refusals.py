"""What a process notes of refused requests between two savings, however many there are."""

from __future__ import annotations

import pytest

from petstore.core.keys import Caller
from petstore.core.limits.bans import BanPolicy
from petstore.core.limits.quota import decide
from petstore.core.refusals import REFUSALS_KEPT
from petstore.ops.access_log import Addresses
from petstore.ops.refusals import ACCOUNTS_MAX, RefusalNotes
from tests.support.windows import limits_of, used_of

PEER = ("192.0.2.77", 1)


def refuse(notes: RefusalNotes, account: int, now_ms: int = 1_000) -> None:
    caller = Caller(account, account, limits_of(1, 1))
    used = used_of((now_ms, 1), (0, 0))
    decision = decide(used, None, caller, BanPolicy(), now_ms)
    assert not decision.allowed
    last = notes.of.get(account) or notes.begin(account)
    last.append((decision, "GET", "/pets", caller, PEER, None))


def test_the_last_twenty_of_an_account() -> None:
    """A thousand leave the newest; what was drained does not come again."""
    notes = RefusalNotes(Addresses())
    for now_ms in range(1_000):
        refuse(notes, 1, now_ms)
    assert [each.at_ms for each in notes.drain()] == list(range(1_000 - REFUSALS_KEPT, 1_000))
    assert notes.drain() == []


def test_of_many_accounts_the_first_ones() -> None:
    """The others of that second are left out, and there is room again after it."""
    notes = RefusalNotes(Addresses())
    for account in range(10 * ACCOUNTS_MAX):
        refuse(notes, account)
    assert [each.account_id for each in notes.drain()] == list(range(ACCOUNTS_MAX))
    refuse(notes, 7_000)
    assert [each.account_id for each in notes.drain()] == [7_000]


@pytest.mark.parametrize(
    ("shown", "address"), [("full", "192.0.2.77"), ("network", "192.0.2.0/24"), ("off", None)]
)
def test_addresses_are_those_of_the_log(shown: str, address: str | None) -> None:
    """PETSTORE_LOG_ADDRESS decides what is stored."""
    notes = RefusalNotes(Addresses((), shown))
    refuse(notes, 1)
    assert [each.address for each in notes.drain()] == [address]
