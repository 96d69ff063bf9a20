"""The model as arithmetic: how often kept pages serve, what a load needs, how many bytes a store takes.

docs/decisions/0022-one-postgresql-and-one-valkey.md explains it, and says which command measured each
constant. Yours differ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from petstore.core.versions import LEASE_SECONDS


class Constants(msgspec.Struct, frozen=True):
    """Microseconds of processor time. Named as in decision 0022."""

    worker_list: float = 32.0  # a worker: a list that is kept, its decision included
    worker_page: float = 62.0  # a worker: more, when PostgreSQL is asked for the page
    worker_add: float = 163.0  # a worker: an addition, at the most
    worker_account: float = 3.3  # a worker: an account in the batch of a second
    decision: float = 13.0  # the core of Valkey: take.lua
    mark: float = 4.8  # the core of Valkey: publish.lua, which each change calls twice
    page: float = 52.0  # PostgreSQL: a page
    add: float = 36.0  # PostgreSQL: an addition, without the wait for the disk
    account: float = 8.8  # PostgreSQL: an account in the batch of a second
    busy: float = 0.6  # how full a core may be before answers wait for it


class Load(msgspec.Struct, frozen=True):
    """Lists and additions a second, accounts that ask within a second, pages asked for by Zipf's law."""

    lists: float
    additions: float
    accounts: float
    pages: int = 1_000


class Need(msgspec.Struct, frozen=True):
    """Workers (a core each), how full Valkey's one core is, and cores of PostgreSQL at work.

    `flusher`: seconds that saving one second's counters takes. Batches that name the same accounts wait for
    each other, so it is not spread over cores.
    """

    kept: float
    workers: int
    valkey: float
    postgres: float
    flusher: float


# How long a change is announced: two round trips to Valkey and a commit.
MARKED_SECONDS = 0.003


def hits(
    popularity: Sequence[float], per_process: float, changes: float, marked_seconds: float = MARKED_SECONDS
) -> float:
    """The share of requests that find what they ask for kept, at `per_process` requests a second.

    What comes `rate` times a second to one process was asked for since the last change in rate / (rate +
    changes) of all cases, and within the same lease; and nobody is writing at that moment.
    """
    found = 0.0
    for share in popularity:
        rate = per_process * share
        both = rate + changes
        if rate > 0.0:
            within = 1 - (1 - math.exp(-both * LEASE_SECONDS)) / (both * LEASE_SECONDS)
            found += share * rate / both * within
    return found * math.exp(-changes * marked_seconds)


def zipf(count: int, skew: float = 1.0) -> list[float]:
    """How likely each of so many is: the n-th in proportion to 1 / n to the power of `skew`."""
    weights = [1 / rank**skew for rank in range(1, count + 1)]
    total = math.fsum(weights)
    return [weight / total for weight in weights]


def need(load: Load) -> Need:
    """More workers share the requests, so each of them keeps less: the least number that is enough."""
    constants, shares, workers = Constants(), zipf(load.pages), 1
    while True:
        kept = hits(shares, load.lists / workers, load.additions)
        # A worker saves each account that it served in this second.
        saved = sum(_seen(load.accounts, load.lists / workers) for _ in range(workers))
        micros = (
            load.lists * (constants.worker_list + (1 - kept) * constants.worker_page)
            + load.additions * constants.worker_add
            + saved * constants.worker_account
        )
        enough = math.ceil(micros / 1e6 / constants.busy)
        if enough <= workers:
            break
        workers = max(workers + 1, (workers + enough) // 2)
    valkey = (load.lists + load.additions) * constants.decision + 2 * load.additions * constants.mark
    postgres = load.lists * (1 - kept) * constants.page + load.additions * constants.add
    flusher = saved * constants.account / 1e6
    return Need(kept, workers, valkey / 1e6, postgres / 1e6 + flusher, flusher)


def _seen(accounts: float, requests: float) -> float:
    """How many of so many accounts, asking equally often, are among so many requests."""
    return accounts * (1 - math.exp(-requests / accounts)) if accounts else 0.0


class Bytes(msgspec.Struct, frozen=True):
    """Bytes of a row with its part of the indexes, in PostgreSQL; and of an account and key in Valkey."""

    animal: float = 81.8 + 251
    entry: float = 158 + 94.8
    source_key: float = 52.3 + 68.6
    account: float = 84.6 + 263
    key: float = 141 + 130
    counters: float = 139 + 22.5
    last_use: float = 89.2 + 22.5
    usage_day: float = 139 + 42.4
    idempotency: float = 134 + 119
    valkey: float = 217.0


class Store(msgspec.Struct, frozen=True):
    """Who and what there is: two keys an account; of the accounts one in ten asks on a day.

    Each animal came from a stock list and has not changed since: one entry in the journal, one source key.
    """

    animals: float
    accounts: float
    days: int = 365
    keys: float = 2.0
    active: float = 0.1
    additions_a_day: float = 0.0


def gigabytes(store: Store) -> dict[str, float]:
    """Gigabytes (10^9 bytes) by kind; idempotency keys stay for a day, usage for the days that are kept."""
    each, accounts, active = Bytes(), store.accounts, store.accounts * store.active
    return {
        "animals": store.animals * each.animal / 1e9,
        "journal": store.animals * each.entry / 1e9,
        "source keys": store.animals * each.source_key / 1e9,
        "accounts and keys": accounts * (each.account + store.keys * (each.key + each.last_use)) / 1e9,
        "counters": accounts * each.counters / 1e9,
        "usage": active * store.days * each.usage_day / 1e9,
        "idempotency keys": store.additions_a_day * each.idempotency / 1e9,
        "Valkey": active * 2 * each.valkey / 1e9,
    }
