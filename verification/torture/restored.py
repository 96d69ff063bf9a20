"""Restores: a copy of an earlier moment takes the store's place, in every way that there is. Old bookmarks
end, new events have new ids, and who follows the recipe (a bookmark of now, the list, the events from there)
ends with what the lists show.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from tests.support.report import Report
from verification.torture.changing import Writers, keys_of_accounts
from verification.torture.copies import KINDS, Restore, opened
from verification.torture.following import Follower, Gone, differences
from verification.torture.places import Place, start

_CHANGES = 400
_FOLLOWERS = 6
_SHOWN = 5


def play(kind: str, folder: Path, report: Report, seed: int, changes: int = _CHANGES) -> None:
    """One store: changes, the copy, changes that are lost, the copy put back, other changes."""
    with ExitStack() as made:
        restore = opened(kind, made, folder)
        made.callback(restore.place.kill)
        faults = list(_faults(restore, random.Random(seed), seed, changes, report))
    for fault in faults[:_SHOWN]:
        report.fault(f"{kind}, {fault}")


def _move(restore: Restore) -> None:
    place = restore.place
    for replica in place.replicas:
        replica.terminate()
    restore.put_back()
    for replica in place.replicas:
        replica.settings["database_url"] = place.url
        start(replica)


def _follower(name: str, place: Place, keys: list[str], seed: int) -> Follower:
    return Follower(name, place.ports, keys[0], random.Random(f"{seed} {name}"), pages=(1, 100))


def _is_refused(follower: Follower) -> Iterator[str]:
    """A fault unless the next answer is the 410 of a restore."""
    lost, seen, bookmark = -1, len(follower.seen), follower.bookmark
    try:
        while lost != follower.lost:  # until it is answered
            lost = follower.lost
            follower.step()
    except Gone as gone:
        if "restored from a copy" not in str(gone):
            yield f"{follower.name}: {gone}"
    else:
        yield f"{follower.name} went on from the old {bookmark}, with {follower.seen[seen : seen + 2]}"


def _faults(
    restore: Restore, chance: random.Random, seed: int, changes: int, report: Report
) -> Iterator[str]:
    place = restore.place
    place.command("db", "migrate")
    keys = keys_of_accounts(place.url)
    place.start()
    before = Writers(place.ports, keys, 1, seed)
    followers = [_follower(f"follower {n}", place, keys, seed) for n in range(_FOLLOWERS)]
    before.make(changes)
    for follower in followers[: chance.choice((0, len(followers) // 2))]:  # the copy may know of no follower
        follower.step()
    restore.copy()
    before.make(changes // 2)
    before.close()
    for number, follower in enumerate(followers):  # some are at the end, some are behind
        follower.step()
        while number % 2 and not follower.step():
            pass
    _move(restore)
    after = Writers(place.ports, keys, 1, seed + 1_000_000)
    after.make(changes)
    for follower in followers:
        follower.move(place.ports)
        yield from _is_refused(follower)
    fresh = [_follower(f"follower {n}, afterwards", place, keys, seed) for n in range(_FOLLOWERS)]
    for follower in fresh[1:]:
        follower.start_anew()
        after.make(changes // 20)
    awaited = after.close()
    for follower in fresh:
        follower.finish(awaited)
    pets = fresh[0].list("/v1/pets?limit=100")
    old = set().union(*(follower.ids for follower in followers))
    for follower in fresh:
        yield from differences(follower, "pet", pets)
        if again := old & follower.ids:
            yield f"{follower.name} got old events: {sorted(again)[:5]}"
    for follower in [*followers, *fresh]:
        yield from (f"{follower.name}: {fault}" for fault in follower.faults + follower.mirror.faults)
    yield from before.faults + after.faults
    report.counts["changes"] += before.changes.total() + after.changes.total()
    report.counts["events followed"] += sum(len(each.seen) for each in [*followers, *fresh])
    report.counts["bookmarks refused"] += len(followers)


def run(report: Report, seed: int, seconds: float) -> None:
    """One way for each seed; all of them in turn."""
    for number, folder in report.rounds_in_folders(seed, seconds):
        play(list(KINDS)[number % len(KINDS)], folder, report, number)
