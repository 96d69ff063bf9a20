"""The events and the usage of an account."""

from __future__ import annotations

import re
from itertools import islice
from urllib.parse import quote

from petstore_client.testing.bodies import MAX, iso
from petstore_client.testing.call import Call
from petstore_client.testing.lists import Parameters, wrong
from petstore_client.testing.messages import Answer, Refusal, encode, tag_of
from petstore_client.testing.store import DATA_SET, Store
from petstore_client.testing.windows import DAY_MS

_SCANNED_MAX = 2_000  # events of one request
_BOOKMARK = re.compile(r"([0-9a-f]{12})-([0-9]{1,19})-([0-9]{1,19})", re.ASCII)
_TYPES = [
    *("pet.created", "pet.updated", "pet.deleted", "category.updated", "order.created", "order.updated"),
    *("account.updated", "account.suspended", "account.resumed", "account.closed"),
    *("key.issued", "key.rotated", "key.revoked", "key.expiring", "key.banned", "key.unbanned"),
    *("limit.approaching", "limit.reached", "webhook.disabled", "webhook.test", "store.restored"),
]
_PATTERNS = [*dict.fromkeys(f"{name.partition('.')[0]}.*" for name in _TYPES), *_TYPES]
_WAITS = [str(seconds) for seconds in range(121)]


def list_events(call: Call, store: Store) -> Answer:
    """The next events; never waits, as the service does when all places to wait are taken."""
    asked = Parameters(call, "type")
    limit, wait = asked.limit(), asked.one_of("wait", _WAITS, "an integer from 0 to 120") or "0"
    types = list(dict.fromkeys(asked.listed))
    if not set(types) <= set(_PATTERNS):
        raise wrong(f"type: expected {', '.join(_PATTERNS)}.")
    place = _place(asked.text("after"), len(store.events))
    wanted = tuple(each.rstrip("*") for each in types) or ("",)
    scanned = list(islice(enumerate(store.events[place:], place + 1), _SCANNED_MAX))
    seen = [
        (number, event)
        for number, (event, account) in scanned
        if account in (None, call.key.account.name) and event["type"].startswith(wanted)
    ]
    end = scanned[-1][0] if scanned else place
    last = seen[limit - 1][0] if len(seen) >= limit else end
    same = [f"limit={limit}", *(f"type={quote(each, safe='*')}" for each in types)]
    same += [f"wait={wait}"] if wait != "0" else []
    link = f'</v1/events?{"&".join(same)}&after={DATA_SET}-0-{last}>; rel="next"'
    content = encode([event for _, event in seen[:limit]])
    headers = {"link": link, "etag": tag_of(content + link.encode())}
    if last < end or len(scanned) == _SCANNED_MAX:
        headers["events-behind"] = "true"
    elif wait != "0" and not seen:
        headers["retry-after"] = "5"
    return Answer(200, headers, content)


def _place(bookmark: str | None, newest: int) -> int:
    """How many events are before a bookmark. Raises invalid_parameter and events_gone."""
    if bookmark is None or bookmark == "now":
        return newest if bookmark else 0
    found = _BOOKMARK.fullmatch(bookmark)
    if found is None or max(int(found[2]), int(found[3])) > MAX:
        expected = "now, or the bookmark in the Link of an earlier answer, not an event's id"
        raise wrong(f"after: expected {expected}.")
    if found[1] != DATA_SET or int(found[3]) > newest:
        raise Refusal(
            "events_gone",
            "This bookmark is of another store, or of this one before it was restored from a copy. Take a new"
            " bookmark with after=now, list the animals, then follow the events from it.",
        )
    return int(found[3])


def get_usage(call: Call, now_ms: int) -> Answer:
    """The account of the key, and its last 90 UTC days."""
    account, today = call.key.account, now_ms // DAY_MS
    windows = account.windows.look(now_ms)
    days = [
        {"date": iso(day * DAY_MS)[:10], "requests": done, "refused": refused, "deprecated": deprecated}
        for day in range(today, today - 90, -1)
        for done, refused, deprecated in [account.days.get(day, (0, 0, 0))]
    ]
    document = {
        "account": account.name,
        "plan": account.plan,
        "perMinute": account.limits[0],
        "perDay": account.limits[1],
        **{each.name: {"used": each.used, "resetAt": iso(each.reset * 1_000)} for each in windows},
        "key": {"access": call.key.access, "expiresAt": None, "bannedUntil": None},
        "days": days,
    }
    return Answer(200, {}, encode(document))
