"""What webhooks are signed with stands in one column alone, and there as its seal says."""

from __future__ import annotations

import base64

import pytest

from petstore.core.idempotency import Idempotency
from petstore.core.limits.plans import PRO
from petstore.core.sealing import Seal
from petstore.core.webhooks import NewWebhook, mint, renewed
from petstore.transactions.rows import TABLES
from tests.support.backends import SharedData
from tests.support.journal import ACTOR

SEALED = Seal([base64.urlsafe_b64encode(bytes(32)).decode()])


@pytest.mark.parametrize(("seal", "tables"), [(SEALED, []), (Seal(), ["webhooks"])], ids=["sealed", "open"])
async def test_no_table_shows_a_secret(backend: SharedData, seal: Seal, tables: list[str]) -> None:
    """Of a webhook that was made, made again by a retry, and got a new one; the journal never, and with a
    key no table at all."""
    store = backend.open()
    await store.accounts.add("shop", PRO, ACTOR)
    await store.keys.issue("shop", "test", ACTOR)
    new, retry = NewWebhook("https://shop.example/hook"), Idempotency(1, "key")
    for _ in range(2):
        made, secrets, _ = await store.webhooks.create(1, 1, new, seal.close([mint()]), ACTOR, retry)

    def renew(text: str, now_ms: int) -> str:
        return seal.close(renewed(seal.open(text), now_ms))

    _, both = await store.webhooks.rotate(made.id, ACTOR, renew)
    assert seal.open(both)[1].text == seal.open(secrets)[0].text
    rows = {
        table.name: str(backend.execute(f"SELECT {', '.join(table.columns)} FROM {table.name}"))
        for table in TABLES
    }
    texts = [each.text for each in seal.open(both)]
    assert [name for name, text in rows.items() if any(each in text for each in texts)] == tables
