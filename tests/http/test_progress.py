"""Whether a client takes what was sent to it: acknowledged bytes, and the queue where nobody counts those."""

from __future__ import annotations

import sys

import pytest

from petstore.http.progress import AnswerProgress
from tests.http.kit import Transport


class Kernel:
    """Says how many bytes were acknowledged. None: it can't."""

    def __init__(self) -> None:
        self.acknowledged: int | None = 0

    def getsockopt(self, *_: int) -> bytes:
        if self.acknowledged is None:
            raise OSError
        return bytes(120) + self.acknowledged.to_bytes(8, "little")


class Client:
    """The client of a connection whose server looks once a second, and has 10 s of patience."""

    def __init__(self) -> None:
        self.kernel = Kernel()
        self._progress = AnswerProgress()
        self._transport = Transport(self.kernel)
        self._now = 50.0

    def has_stalled(self, waiting: int) -> bool:
        self._now += 1.0
        return self._progress.has_stalled(self._transport, waiting, self._now, 10.0)


def test_a_client_that_takes_nothing_has_stalled_after_its_time() -> None:
    """However many answers are added."""
    client = Client()
    assert [client.has_stalled(1_000 + n) for n in range(11)] == [False] * 10 + [True]


def test_one_acknowledged_byte_in_time_is_progress() -> None:
    """Though the queue stays as long as it was: the kernel's own buffer becomes shorter."""
    client = Client()
    for acknowledged in range(5):
        client.kernel.acknowledged = acknowledged
        assert [client.has_stalled(1_000) for _ in range(10)] == [False] * 10
    assert client.has_stalled(1_000)


@pytest.mark.parametrize("knows", [True, False])
def test_time_without_a_queue_does_not_count(knows: bool) -> None:
    """It begins anew with each queue."""
    client = Client()
    client.kernel.acknowledged = 0 if knows else None
    client.has_stalled(1_000)
    for _ in range(100):
        assert not client.has_stalled(0)
    assert [client.has_stalled(2_000) for _ in range(11)] == [False] * 10 + [True]


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_where_nobody_counts_a_shorter_queue_is_progress(
    monkeypatch: pytest.MonkeyPatch, platform: str
) -> None:
    """Some sandboxes refuse the option, and other systems have none. A longer queue is not progress."""
    monkeypatch.setattr(sys, "platform", platform)
    client = Client()
    client.kernel.acknowledged = None
    assert not any(client.has_stalled(1_000 - n) for n in range(50))
    assert [client.has_stalled(1_000 + n) for n in range(10)] == [False] * 9 + [True]
