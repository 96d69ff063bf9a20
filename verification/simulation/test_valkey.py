"""The simulation's Valkey decides what the real one does with the real scripts."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing

import libvalkey
import pytest

from petstore.core.keys import Caller
from petstore.core.limits.bans import BanPolicy
from petstore.limiter.valkey.calls import Calls
from petstore.limiter.valkey.scripts import (
    CATALOGUE,
    CATALOGUE_WRITERS,
    EPOCH,
    KEYRING,
    KEYRING_WRITERS,
    Script,
    Scripts,
    command,
)
from tests.support.clock import ManualClock
from tests.support.valkey import Client, SteeredTime, emptied_url, steered_scripts
from verification.simulation.network import Delays
from verification.simulation.valkey import SimulatedValkey
from verification.simulation.virtual import VirtualLoop

_POLICY = BanPolicy(strikes_allowed=3, grace_ms=500, durations_ms=(2_000, 5_000))
_KEYS = (CATALOGUE, CATALOGUE_WRITERS, KEYRING, KEYRING_WRITERS)


def _words(call: bytes) -> list[bytes]:
    reader = libvalkey.Reader()
    reader.feed(call)
    words: list[bytes] = reader.gets()
    return words


def _parsed(reply: bytes) -> object:
    reader = libvalkey.Reader()
    reader.feed(reply)
    return reader.gets()


def _caller(rng: random.Random, now_ms: int, pardons: dict[int, int]) -> Caller:
    """A caller of one of three accounts; a pardon stays."""
    number = rng.randrange(3)
    if rng.random() < 0.01:
        pardons[number] = now_ms
    return Caller(number, number, (6, 40), pardoned_at_ms=pardons.get(number, 0))


def _records(rng: random.Random, now_ms: int) -> tuple[bytes, bytes]:
    """What a counter store may have: behind what was counted, equal to it or ahead of it."""
    opened_ms = now_ms // 1_000 * 1_000 - rng.choice((0, 3_000, 70_000))
    windows = b"%d %d %d %d" % (opened_ms, rng.randrange(7), now_ms // 86_400_000, rng.randrange(40))
    banned = b"0 0 0 0 1 %d %d 0" % (now_ms - 1_000, opened_ms + 2_000)
    return rng.choice((windows, b"-60000 0 0 0")), rng.choice((b"-", b"-", banned))


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    with closing(VirtualLoop()) as made:
        yield made


@pytest.mark.parametrize("seed", range(3))
def test_the_simulated_valkey_answers_as_the_real_one(loop: VirtualLoop, seed: int) -> None:
    """Admissions, refusals, bans, pardons, marks, epochs, restored records and pending counts."""
    rng, clock, url = random.Random(seed), ManualClock(1_800_000_000_000 - 40_000), emptied_url()
    client, time, scripts = Client(url), SteeredTime(url, clock), steered_scripts()
    for script in (scripts.take, scripts.publish):
        client("SCRIPT", "LOAD", script.text)
    simulated = SimulatedValkey(loop, Delays(rng, 0.0, 0.0, 0.0), _POLICY, 0.0)
    ours = Scripts()
    calls, epoch = Calls(ours.take, _POLICY), 1
    kinds = set()
    pardons: dict[int, int] = {}

    def both(call: list[bytes], script: Script) -> list[list[object]]:
        time.send()
        theirs = client(*[script.digest if place == 1 else word for place, word in enumerate(call)])
        own = _parsed(simulated._answer(call, clock.now_ms() * 1_000))
        assert own == theirs
        return own if isinstance(own, list) else []

    for _ in range(400):
        clock.advance(rng.choice((0.0, 0.05, 0.3, 0.9, 4.0)))
        if rng.random() < 0.06:
            what = rng.choice((b"begin", b"complete"))
            keys = rng.choice((_KEYS[:2], _KEYS[2:], _KEYS))
            writer = b"writer-%d" % rng.randrange(2)
            call = _words(
                command(b"EVALSHA", ours.publish.digest, b"%d" % len(keys), *keys, what, writer, b"3000")
            )
            both(call, scripts.publish)
        if rng.random() < 0.03:
            epoch += 1
            client("SET", EPOCH, epoch)
            simulated._data.epoch = epoch
        cached_version = (int(rng.random() < 0.05), 0)
        askers = [
            (_caller(rng, clock.now_ms(), pardons), cached_version, rng.choice((1, 1, 2, 3)))
            for _ in range(rng.choice((1, 1, 2, 3)))
        ]
        for reply in both(_words(calls.take_all(askers)), scripts.take):
            kinds.add(reply[0])
        caller = _caller(rng, clock.now_ms(), pardons)
        pending = b"%d 2 %d 2" % (clock.now_ms() // 1_000 * 1_000 - 3_000, clock.now_ms() // 86_400_000)
        more: tuple[bytes, ...] = (b"", b"", b"", pending) if rng.random() < 0.03 else ()
        (reply,) = both(_words(calls.take(caller, cached_version, more)), scripts.take)
        kinds.add(reply[0])
        if reply[0] == 1:
            more = (b"%d" % int(str(reply[1])), *_records(rng, clock.now_ms()), *more[3:])
            kinds.add(both(_words(calls.take(caller, cached_version, more)), scripts.take)[0][0])
    assert kinds >= {0, 1, 2, 3, 4, 5, 6}
