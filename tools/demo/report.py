"""What the demo prints at its end: what there is, the keys, and lines to try."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from shlex import quote

from petstore import config
from petstore.core.people import Role
from tools.demo.customers import CUSTOMERS, SCRAPER, STORE
from tools.demo.shop import Shop
from tools.demo.story import Story

# Who may sign in to the console, and as what.
_PEOPLE = (("vic", Role.VIEWER), ("sam", Role.STAFF), ("vera", Role.OPERATOR))


async def report(shop: Shop, story: Story, environment: Mapping[str, str]) -> str:
    """The text, with every key and the people's links; they are shown nowhere else."""
    pets = json.loads(await shop.run("pets", "list", "--limit", "10000", "--json"))
    states = [pet["status"] for pet in pets]
    counts = ", ".join(f"{states.count(state)} {state}" for state in ("available", "pending", "sold"))
    settings = " ".join(f"{name}={quote(value)}" for name, value in environment.items())
    base = f"{config.load(environment).listens_at}/v1"
    available = [pet["id"] for pet in pets if pet["status"] == "available"]
    lines = [
        f"\n{len(pets)} animals ({counts}), {len(CUSTOMERS)} customers, seed {story.seed}.",
        "\nKeys, shown only now:\n",
        *_key_lines(story),
        "\nThe console, by links that work once, until tomorrow:\n",
        *[f"  {role:<9} {await _link(shop, name, role)}" for name, role in _PEOPLE],
        "\nTry, once it serves:\n",
        *_request_lines(base, story.keys, available[-2:]),
        "\nAnd in another terminal:\n",
        *(f"  {settings} .venv/bin/petstore {command}" for command in _COMMANDS),
        "",
    ]
    return "\n".join(lines)


_COMMANDS = (
    "orders list --status placed",
    "journal --about account:happy-tails",
    "usage happy-tails",
    "bans",
)


async def _link(shop: Shop, name: str, role: Role) -> str:
    return (await shop.run("people", "add", name, "--role", role.value)).strip()


def _key_lines(story: Story) -> Iterator[str]:
    for customer in CUSTOMERS:
        for key in customer.keys:
            remark = _remark(customer.name, key.label, story)
            name = f"{customer.name}, {key.label}"
            yield f"  {key.access:<7} {name:<30} {story.keys[customer.name, key.label]}{remark}"


def _remark(name: str, label: str, story: Story) -> str:
    [customer] = (each for each in CUSTOMERS if each.name == name)
    [key] = (each for each in customer.keys if each.label == label)
    if name == SCRAPER:
        return "  banned for an hour"
    if customer.ends:
        return {"suspend": "  suspended", "close": "  closed"}[customer.ends[1]]
    return "  expired" if key.options and story.days > 30 else ""


def _request_lines(base: str, keys: dict[tuple[str, str], str], available: list[int]) -> Iterator[str]:
    def line(key: tuple[str, str], target: str, more: str = "") -> str:
        return f"  curl -i -H 'Authorization: Bearer {keys[key]}' '{base}{target}'{more}"

    ordered, renamed = available
    sent = " -H 'Content-Type: application/json' -d"
    yield line(("paws-and-claws", "web site"), "/pets?status=available&categoryId=2")
    yield line(("paws-and-claws", "shop"), "/store/orders", f"""{sent} '{{"petId": {ordered}}}'""")
    yield line(("paws-and-claws", "shop"), "/store/orders?status=delivered&limit=5")
    yield line((STORE, "counter"), f"/pets/{renamed}", f""" -X PATCH{sent} '{{"name": "Rex the Second"}}'""")
    yield line(("paws-and-claws", "web site"), "/usage")
    yield line((SCRAPER, "crawler"), "/pets")
