"""The customers of the demo: their plans, their keys, and how much each of them asks in a day."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Key:
    """A key to issue. `options` are those of `petstore keys issue`."""

    label: str
    access: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Customer:
    """An account. `daily` is about how many lists it asks for on a working day at the end; `orders` says how
    often it orders beside others."""

    name: str
    plan: tuple[str, ...]
    daily: int
    orders: int = 0
    keys: tuple[Key, ...] = ()
    becomes: tuple[int, str] | None = None  # the day (of 70) and the plan that it changes to
    old_client: bool = False  # its program reads single animals by the deprecated operation
    impatient: bool = False  # asks in bursts, and meets the minute's limit
    rotates: tuple[int, str] | None = None  # the day (of 70), and the label of the key that gets a successor
    ends: tuple[int, str] | None = None  # the day (of 70), and `suspend` or `close`


STORE = "pet-store"
SCRAPER = "price-scraper"
CUSTOMERS = (
    Customer(
        STORE, ("enterprise", "--per-minute", "6000", "--per-day", "500000"), 60,
        keys=(Key("counter", "manage"), Key("stock room", "write"), Key("window display", "read")),
    ),
    Customer(
        "paws-and-claws", ("pro",), 110, orders=5, rotates=(40, "web site"),
        keys=(Key("shop", "write"), Key("web site", "read")),
    ),
    Customer("happy-tails", ("free",), 70, orders=3, becomes=(35, "pro"), keys=(Key("web site", "write"),)),
    Customer("riverside-rescue", ("free",), 45, orders=2, old_client=True, keys=(Key("adoptions", "write"),)),
    Customer(
        "zooland", ("business",), 160, orders=6,
        keys=(Key("branches", "write"), Key("campaign", "read", ("--expires", "30d"))),
    ),
    Customer(
        "pet-finder", ("enterprise", "--per-minute", "3000", "--per-day", "1000000"), 220,
        keys=(Key("search", "read"), Key("partner portal", "write")),
    ),
    Customer("kitty-blog", ("free",), 30, impatient=True, keys=(Key("blog", "read"),)),
    Customer("bargain-pets", ("pro",), 80, orders=2, ends=(60, "suspend"), keys=(Key("shop", "write"),)),
    Customer(
        "fin-and-feather", ("business",), 50, orders=1, ends=(48, "close"), keys=(Key("tills", "write"),),
    ),
    Customer(SCRAPER, ("free",), 35, impatient=True, keys=(Key("crawler", "read"),)),
)  # fmt: skip
