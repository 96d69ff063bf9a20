"""The simulation's Valkey decides what the real one does with the real scripts."""

from __future__ import annotations

import random

import libvalkey
import pytest

from benchmarks.scale.network import Delays
from benchmarks.scale.valkey import SimulatedValkey
from benchmarks.scale.virtual import VirtualLoop
from petstore.keys import Grant
from petstore.limiter.scripts import (
    CATALOGUE,
    CATALOGUE_WRITERS,
    KEYRING,
    KEYRING_WRITERS,
    Script,
    Scripts,
    command,
)
from petstore.limiter.valkey import _Calls
from petstore.quota import BanPolicy
from tests.support.clock import ManualClock
from tests.support.valkey import Client, SteeredTime, emptied_url, steered_scripts

_POLICY = BanPolicy(minimum_rejections=3, grace_ms=500, durations_ms=(2_000, 5_000))
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


def _arguments(
    rng: random.Random, now_ms: int, pardons: dict[int, int]
) -> tuple[Grant, int, tuple[bytes, ...]]:
    """A grant, the version that it was kept under, seeds, sometimes counts to carry. A pardon stays."""
    number = rng.randrange(3)
    if rng.random() < 0.01:
        pardons[number] = now_ms
    grant = Grant(number, number, 6, 40, pardoned_at_ms=pardons.get(number, 0))
    carried = b"%d 2 %d 2" % (now_ms // 1_000 * 1_000 - 3_000, now_ms // 86_400_000)
    seeds = (b"-60000 0 0 0", b"-")
    return grant, int(rng.random() < 0.05), (*seeds, carried) if rng.random() < 0.03 else seeds


@pytest.mark.parametrize("seed", range(3))
def test_the_simulated_valkey_answers_as_the_real_one(seed: int) -> None:
    """Admissions, refusals, bans, pardons, marks that are settled or expire, seeds and what is carried."""
    rng, clock, url = random.Random(seed), ManualClock(1_800_000_000_000 - 40_000), emptied_url()
    client, time, scripts = Client(url), SteeredTime(url, clock), steered_scripts()
    for script in (scripts.take, scripts.publish):
        client("SCRIPT", "LOAD", script.text)
    simulated = SimulatedValkey(VirtualLoop(), Delays(rng, 0.0, 0.0, 0.0), _POLICY, 0.0)
    ours = Scripts()
    kinds = set()
    pardons: dict[int, int] = {}

    def both(call: list[bytes], script: Script) -> list[object]:
        time.tell()
        theirs = client(*[script.digest if place == 1 else word for place, word in enumerate(call)])
        own = _parsed(simulated._answer(call, clock.now_ms() * 1_000))
        assert own == theirs
        return own if isinstance(own, list) else []

    for _ in range(400):
        clock.advance(rng.choice((0.0, 0.05, 0.3, 0.9, 4.0)))
        if rng.random() < 0.06:
            what = rng.choice((b"begin", b"settle"))
            keys = rng.choice((_KEYS[:2], _KEYS[2:], _KEYS))
            writer = b"writer-%d" % rng.randrange(2)
            call = _words(
                command(b"EVALSHA", ours.publish.digest, b"%d" % len(keys), *keys, what, writer, b"3000")
            )
            both(call, scripts.publish)
        grant, kept_under, more = _arguments(rng, clock.now_ms(), pardons)
        reply = both(_words(_Calls(ours.take, _POLICY).take(grant, kept_under, more)), scripts.take)
        kinds.add(reply[0])
    assert kinds >= {0, 2, 3, 4, 5}
