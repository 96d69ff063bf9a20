"""The lists of animals and orders: their parameters, cursors and links."""

from __future__ import annotations

import re
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Collection
from urllib.parse import parse_qsl

from petstore_client.testing.bodies import MAX, ORDER_STATUSES, PET_STATUSES
from petstore_client.testing.call import Call
from petstore_client.testing.messages import Answer, Refusal, encode, tag_of
from petstore_client.testing.store import Store

_CURSOR = re.compile(r"[A-Za-z0-9_-]{16}", re.ASCII)
_FIRST = "A" * 16  # the cursor of every first page
_LIMITS = [str(limit) for limit in range(1, 101)]
_IDS_MAX = 100


def wrong(message: str) -> Refusal:
    """The refusal of a parameter."""
    return Refusal("invalid_parameter", message)


class Parameters:
    """The query of a request. `listed` has the values of the one parameter that may stand often."""

    def __init__(self, call: Call, repeatable: str = "") -> None:
        names, repeated = call.row.parameters, ""
        self._given: dict[str, str] = {}
        self.listed: list[str] = []
        for name, value in parse_qsl(call.query, keep_blank_values=True):
            if repeatable and name == f"{repeatable}[]":  # as axios writes arrays
                name = repeatable
            if name not in names:
                shown = (name if len(name) <= 64 else f"{name[:64]}…") or "A value without a name"
                taken = ", ".join(names) or "none"
                raise wrong(f"{shown}: not a parameter of this operation; it takes {taken}.")
            if name == repeatable:
                self.listed += value.split(",")
            else:
                repeated = name if name in self._given else repeated
                self._given[name] = value
        if repeated:
            raise wrong(f"{repeated}: sent more than once; send it once.")

    def text(self, name: str) -> str | None:
        return self._given.get(name)

    def one_of(self, name: str, values: Collection[str], expected: str = "") -> str | None:
        """Raises invalid_parameter for another value."""
        text = self._given.get(name)
        if text is not None and text not in values:
            raise wrong(f"{name}: expected {expected or 'one of ' + ', '.join(values)}.")
        return text

    def limit(self) -> int:
        return int(self.one_of("limit", _LIMITS, "an integer from 1 to 100") or 20)

    def integer(self, name: str, low: int, text: str | None) -> int | None:
        """A canonical int64 from `low` on; None without a text."""
        if text is None:
            return None
        if not re.fullmatch(r"0|-?[1-9][0-9]{0,18}", text, re.ASCII) or not low <= int(text) <= MAX:
            raise wrong(f"{name}: expected an integer from {low} to {MAX}.")
        return int(text)

    def ids(self) -> list[int]:
        ids = {self.integer("id", 1, text) or 0 for text in self.listed}
        if len(self.listed) > _IDS_MAX:
            raise wrong(f"id: at most {_IDS_MAX} values, got {len(self.listed)}.")
        return sorted(ids)


def list_resources(call: Call, store: Store) -> Answer:
    """A page of animals or orders."""
    asked, account = Parameters(call, "id"), call.key.account.name
    is_pets = call.row.name == "listPets"
    ids, limit = asked.ids(), asked.limit()
    status = asked.one_of("status", PET_STATUSES if is_pets else ORDER_STATUSES)
    category = asked.integer("categoryId", -MAX - 1, asked.text("categoryId"))
    is_newest_first = asked.one_of("order", ("id", "-id"), "id or -id") == "-id"
    is_all = asked.one_of("scope", ("own", "all"), "own or all") == "all"
    if is_all and call.key.access != "manage":
        message = f"scope=all needs a key of level manage; this key has {call.key.access}."
        raise Refusal("forbidden", f"{message} Ask the operator for one.")
    filters = "" if status is None else f"&status={status}"
    filters += "".join(f"&id={each}" for each in ids)
    filters += "" if category is None else f"&categoryId={category}"
    filters += "&order=-id" * is_newest_first + "&scope=all" * is_all
    bound = zlib.crc32(f"{call.path}{filters} {account * (not (is_pets or is_all))}".encode())
    start = _start(asked, bound)
    resources = {each: (pet, "") for each, pet in store.pets.items()} if is_pets else store.placed()
    found = [
        (each, owner)
        for _, (each, owner) in sorted(resources.items(), reverse=is_newest_first)
        if status in (None, each["status"])
        and category in (None, each.get("categoryId"))
        and (not ids or each["id"] in ids)
        and (is_pets or is_all or owner == account)
        and (not start or (each["id"] < start if is_newest_first else each["id"] > start))
    ]
    page = found[:limit]
    link = f'<{call.path}?limit={limit}{filters}>; rel="first"'
    if len(found) > limit:
        cursor = _cursor(page[-1][0]["id"], bound)
        link = f'<{call.path}?limit={limit}{filters}&cursor={cursor}>; rel="next", {link}'
    content = encode([each | ({"account": owner} if is_all else {}) for each, owner in page])
    tagged = encode(page[0][0]) if len(ids) == len(page) == 1 else content + link.encode()
    is_named_by_tag = not (is_all and len(ids) == 1)  # the order's own tag leaves out the account's name
    return Answer(200, {"link": link, "etag": tag_of(tagged)}, content, is_named_by_tag)


def _cursor(last_id: int, bound: int) -> str:
    return urlsafe_b64encode(last_id.to_bytes(8) + bound.to_bytes(4)).decode()


def _start(asked: Parameters, bound: int) -> int:
    """The identifier before the page, 0 for the first one. Raises invalid_parameter for another list's
    cursor."""
    cursor, after = asked.text("cursor"), asked.text("after")
    if after is not None:
        if cursor not in (None, _FIRST):
            raise wrong("cursor: not together with after; send one of them.")
        if not re.fullmatch(r"[1-9][0-9]{0,18}", after, re.ASCII) or int(after) > MAX:
            raise wrong(f"after: expected an identifier, an integer from 1 to {MAX}.")
        return int(after)
    if cursor in (None, _FIRST):
        return 0
    if cursor and _CURSOR.fullmatch(cursor):
        packed = urlsafe_b64decode(cursor)
        if packed[8:] == bound.to_bytes(4):
            return int.from_bytes(packed[:8])
    raise wrong(
        "cursor: not one that was given for this filter; follow the Link header, or start without a cursor."
    )
