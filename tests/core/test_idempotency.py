"""Requests under an Idempotency-Key that one process carries out, without a store."""

from __future__ import annotations

import asyncio
import weakref

import msgspec
import pytest

from petstore.core.digests import digest
from petstore.core.errors import IdempotencyKeyReused
from petstore.core.idempotency import Creation, IdempotencyKey, InFlight, fingerprint
from petstore.core.pets import NewPet

KEY = IdempotencyKey(1, "a key")


async def test_a_retry_waits_for_the_write_that_its_client_left() -> None:
    """A retry begins only after the write that its client left; done writes are forgotten to bound memory."""
    flights, begun, count = InFlight(), list[asyncio.Future[str]](), asyncio.Semaphore(0)

    def begin() -> asyncio.Future[str]:
        begun.append(asyncio.Future())
        count.release()
        return begun[-1]

    gone = asyncio.create_task(flights.carry_out(KEY, begin))
    await count.acquire()
    gone.cancel()
    await asyncio.wait([gone])
    retry = asyncio.create_task(flights.carry_out(KEY, begin))
    await asyncio.sleep(0)
    assert len(begun) == 1
    begun[0].set_result("the first answer")
    await count.acquire()
    begun[1].set_result("the second answer")
    assert await retry == "the second answer"
    done = weakref.ref(begun.pop(0))
    del gone
    assert done() is None


def test_a_reuse_says_what_to_do() -> None:
    """The first words are in the contract's example too."""
    creation = Creation(KEY, "order", b"\0" * 32)
    creation.check_replay("order", b"\0" * 32)
    for resource, other in (("order", b"\1" * 32), ("pet", b"\0" * 32)):
        with pytest.raises(IdempotencyKeyReused) as refused:
            creation.check_replay(resource, other)
        assert str(refused.value) == (
            "This Idempotency-Key was used within the last 24 hours for another request;"
            " use a new key for a new request."
        )


def test_an_optional_member_that_a_release_adds_leaves_a_repeat_the_same() -> None:
    """The bytes that 1.1.0 hashed, also of an animal with further members that are not set."""
    later = msgspec.defstruct(
        "Later", [("note", str | None, None)], bases=(NewPet,), rename="camel", frozen=True
    )
    first = digest(b'{"name":"Rex","categoryId":1,"status":"available"}')
    assert fingerprint(NewPet("Rex", 1)) == fingerprint(later("Rex", 1)) == first
    assert fingerprint(later("Rex", 1, note="Shy.")) != first
