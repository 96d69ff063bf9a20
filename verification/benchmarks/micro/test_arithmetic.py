"""Parts that neither wait nor touch the store: a decision, encoding, decoding, headers."""

from __future__ import annotations

import json

from pytest_benchmark.fixture import BenchmarkFixture

from petstore.api.pipeline.response import limit_lines
from petstore.core.keys import Caller
from petstore.core.limits.bans import BanPolicy
from petstore.core.limits.decision import Decision
from petstore.core.limits.quota import decide
from petstore.core.limits.windows import AccountWindows
from petstore.core.pets import NEW_PET, NewPet, Pet, PetStatus
from petstore.core.preconditions import encode

NOW_MS = 1_800_000_030_000
CALLER = Caller(1, 1, (10**12, 10**12))


def _decision() -> Decision:
    return decide(AccountWindows(), None, CALLER, BanPolicy(), NOW_MS)


def test_a_decision_takes_one_request_from_both_windows(benchmark: BenchmarkFixture) -> None:
    """This is what each request pays for its limits."""
    used, policy = AccountWindows(), BanPolicy()
    assert benchmark(decide, used, None, CALLER, policy, NOW_MS).allowed


def test_both_dialects_of_the_limits_become_bytes(benchmark: BenchmarkFixture) -> None:
    """This is what each answer pays for its headers of limits."""
    assert benchmark(limit_lines, _decision(), b"one").startswith(b"x-ratelimit-limit: 1000000000000\r\n")


def test_encode_20_animals(benchmark: BenchmarkFixture) -> None:
    """A page of animals becomes bytes."""
    pets = [Pet(number, f"Pet number {number}", number, PetStatus.AVAILABLE) for number in range(1, 21)]
    assert len(json.loads(benchmark(encode, pets))) == 20


def test_decode_a_body(benchmark: BenchmarkFixture) -> None:
    """An animal without faults is read from the body of a request."""
    new = benchmark(NEW_PET.read, b'{"name":"Rex","categoryId":1,"status":"pending"}')
    assert new == NewPet("Rex", 1, PetStatus.PENDING)
