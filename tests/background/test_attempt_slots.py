"""The attempts that may be under way at once."""

from __future__ import annotations

import asyncio

from petstore.background.delivery_attempts import AttemptSlots


async def test_an_account_leaves_slots_for_others() -> None:
    """One whose receivers never answer has its share; another one begins at once, and waits for no share."""
    slots, began = AttemptSlots(5, 3), list[int]()

    async def hold(account_id: int) -> None:
        async with slots.of(account_id):
            began.append(account_id)
            await asyncio.Event().wait()

    tasks = [asyncio.create_task(hold(account_id)) for account_id in (1, 1, 1, 1, 1, 2, 2, 2)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert began == [1, 1, 1, 2, 2]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    async with slots.of(1), slots.of(1), slots.of(1), slots.of(2), slots.of(2):
        pass
