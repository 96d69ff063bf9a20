"""The work of the background process, in the process of a test."""

from __future__ import annotations

from io import BytesIO

from petstore.background.imports import Imports
from petstore.background.jobs import carry_out_next
from petstore.background.taking_back import TakesBack
from petstore.core.imports import NewUpload, pack
from petstore.storage.store import Store


async def carry_out(store: Store) -> None:
    """Carry out every job that is free."""
    for work in (Imports(store), TakesBack(store)):
        while await carry_out_next(store.jobs, work):
            pass


async def keep_list(
    store: Store,
    content: bytes,
    actor: str,
    *,
    file: str = "stock.csv",
    form: str = "csv",
    key_name: str | None = None,
) -> int:
    """A list as the console keeps it; its id."""
    packed = BytesIO()
    pack(BytesIO(content), packed)
    return await store.uploads.add(NewUpload(file, form, key_name, len(content)), packed, actor)
