"""When the first of very many waiting repetitions may begin, which each poll of the journal asks."""

from __future__ import annotations

import asyncio
import random
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from petstore.background.delivery_attempts import AttemptRunner, Tools
from petstore.core.deliverers import OwnedWebhook
from petstore.core.events import Bookmark, Position
from petstore.core.webhooks import FURTHEST_MS, Repetition, WebhookHealth
from tests.support.cases import every_case
from tests.support.clock import ManualClock

_TIMES = (-50, -3, -2, -1, 0, 1, 2, 3, 50, FURTHEST_MS + 1)


def runner(clock: ManualClock, paused_ms: int, *, can_sign: bool = True) -> AttemptRunner:
    """A webhook that is paused for so long."""
    health = WebhookHealth(paused_until_ms=clock.ms + paused_ms)
    bookmark = Bookmark("0f3a9c2b5d7e", Position())
    webhook = OwnedWebhook(7, 0, 1, "https://shop.example/hook", ("*",), "sealed", bookmark, health)
    cipher: Any = SimpleNamespace(can_decrypt=lambda _: can_sign)
    unused: Any = Mock()
    return AttemptRunner(
        webhook,
        Tools("tests", unused, unused, unused, cipher, clock, unused, asyncio.Semaphore(), unused),
    )


@every_case("can_sign", [True, False])
def test_no_repetition_may_begin_sooner_than_the_first(can_sign: bool) -> None:
    """Whatever waits for a pause, was asked for, or lies ahead of a clock that was set back."""
    chance, clock = random.Random(7), ManualClock()
    for _ in range(2_000):
        webhook = runner(clock, chance.choice(_TIMES[:-1]), can_sign=can_sign)
        times = chance.choices(_TIMES[:-1], k=chance.randrange(1, 6)) + chance.sample(
            _TIMES[-1:], chance.randrange(2)
        )
        due = sorted(
            Repetition(clock.ms + at_ms, "", at, chance.randrange(2)) for at, at_ms in enumerate(times)
        )
        assert webhook.soonest_ms(due) == min(map(webhook.due_ms, due)), due


@every_case("paused_ms", [-1, 1_000_000])
def test_few_of_those_that_wait_are_looked_at(paused_ms: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at each of 100,000 took a tenth of a core at rest."""
    clock = ManualClock()
    webhook, asked = runner(clock, paused_ms), list[Repetition]()
    due_ms = webhook.due_ms

    def noted(each: Repetition) -> int:
        asked.append(each)
        return due_ms(each)

    monkeypatch.setattr(webhook, "due_ms", noted)
    webhook.soonest_ms([Repetition(clock.ms + at, "", at, 1) for at in range(1_000)])
    assert len(asked) <= 3
