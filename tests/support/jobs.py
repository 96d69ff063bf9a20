"""The work of the background process, in the process of a test."""

from __future__ import annotations

from io import BytesIO

from petstore.background.imports import Imports
from petstore.background.jobs import carry_out_next
from petstore.background.list_reverts import ListReverter
from petstore.core.uploads import NewUpload, Upload, UploadState, pack
from petstore.storage.store import Store


async def carry_out(store: Store) -> None:
    """Carry out every job that is free."""
    for kind in (Imports(store), ListReverter(store)):
        while await carry_out_next(store.jobs, kind):
            pass


async def work(store: Store, upload_id: int, step: UploadState, actor: str) -> Upload:
    """Ask for a step of a list as it is now, and have it carried out."""
    seen = (await store.uploads.get(upload_id)).run
    await store.uploads.ask(upload_id, step, actor, expected_run=seen)
    await carry_out(store)
    return await store.uploads.get(upload_id)


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
