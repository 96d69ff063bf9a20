"""Searches in both stores: what the index has, what is newer than it, and how it is made again."""

from __future__ import annotations

import asyncio
import random
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import cast

import pytest

from petstore.core.errors import StoreUnavailable
from petstore.core.limits.plans import FREE
from petstore.core.orders import NewOrder
from petstore.core.pets import NewPet, PetChange, PetStatus
from petstore.core.search import FORMAT, IndexProgress, SearchKind, Words
from petstore.storage.store import Store
from petstore.transactions import search
from petstore.transactions.search import SearchPage, SearchQuery
from tests.storage.contract.test_events import settled
from tests.support.backends import SharedData, through_pgbouncer_too
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR

NAMES = [
    "Lady Captain",
    "Captain Rex",
    "Ünï",
    "uni",
    "小花猫",
    "Мурка",
    "محبوب",
    "한국이",
    "O\u2019Malley",
    "x",
    "R%x_",
]
QUERIES = [
    "captain",
    "cap lady",
    "UNI",
    "ünï",
    "花",
    "花猫",
    "мурка",
    "حبوب",
    "국",
    "o'malley",
    "x",
    "%x",
    "r",
    "zz",
]


async def index(store: Store) -> None:
    """Put all that is committed into the index."""
    await settled(store)
    while await store.search.step():
        pass


async def found(
    store: Store, text: str, kind: SearchKind = SearchKind.PETS, **conditions: object
) -> tuple[int, ...]:
    answer = await store.search.find(SearchQuery(kind, text, 50, conditions=conditions))
    assert answer is not None
    assert answer == SearchPage(answer.ids)
    return answer.ids


async def test_names_are_found_by_any_part_in_any_script(store: Store) -> None:
    """The newest first, whether the index has them or the journal alone."""
    ids = {name: (await store.pets.add(NewPet(name, 1), ACTOR)).pet.id for name in NAMES[:6]}
    assert await store.search.find(SearchQuery(SearchKind.PETS, "captain", 50)) is None
    await index(store)
    ids |= {name: (await store.pets.add(NewPet(name, 1), ACTOR)).pet.id for name in NAMES[6:]}
    await settled(store)
    for _ in range(2):
        for text in QUERIES:
            expected = [ids[name] for name in NAMES if Words(text).match(name)]
            assert await found(store, text) == tuple(sorted(expected, reverse=True)), text
        await index(store)


async def test_the_index_follows_changes_and_removals(backend: SharedData, store: Store) -> None:
    """It follows where another process makes the index; a reader that has none open yet sees it."""
    other = backend.open()
    pets = [(await store.pets.add(NewPet(name, 1), ACTOR)).pet for name in ("Rex", "Rexa", "Sam")]
    await index(other)
    assert await found(store, "rex") == (pets[1].id, pets[0].id)
    await store.pets.change(pets[0].id, PetChange(name="Bella"), ACTOR)
    await store.pets.change(pets[2].id, PetChange(name="Trex"), ACTOR)
    await store.pets.remove(pets[1].id, ACTOR)
    await settled(store)
    for store_ in (store, other):
        assert await found(store_, "rex") == (pets[2].id,)
        assert await found(store_, "bella") == (pets[0].id,)
        await index(other)
    assert (
        await store.search.index.find(SearchKind.PETS, Words("rexa").keys, 2**62, newest_first=True, limit=9)
        == []
    )


async def test_accounts_and_orders_are_found_by_name_and_reference(store: Store) -> None:
    """An order without a reference is not found."""
    account = await store.accounts.add("claws-and-paws", FREE, ACTOR)
    pets = [(await store.pets.add(NewPet("Rex", 1), ACTOR)).pet.id for _ in range(2)]
    order = await store.orders.place(account.id, NewOrder(pets[0], reference="Invoice 2026/77"), ACTOR)
    await store.orders.place(account.id, NewOrder(pets[1]), ACTOR)
    await index(store)
    assert await found(store, "paws", SearchKind.ACCOUNTS) == (account.id,)
    assert await found(store, "2026/7", SearchKind.ORDERS) == (order.order.id,)
    await store.accounts.rename("claws-and-paws", "pads", ACTOR)
    await index(store)
    assert await found(store, "paws", SearchKind.ACCOUNTS) == ()


@through_pgbouncer_too
async def test_pages_go_both_ways_and_conditions_are_kept(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each animal once, in order, also those newer than the index; a rare condition cuts the look."""
    monkeypatch.setattr(search, "IDS_MAX", 4)
    monkeypatch.setattr(search, "TEXTS_SCANNED_MAX", 12)
    monkeypatch.setattr(search, "ROWS_PER_STEP", 7)
    chance = random.Random(7)
    ids = []
    for n in range(40):
        if n == 30:
            await index(store)
        status = PetStatus.SOLD if n == 2 else PetStatus.AVAILABLE
        added = await store.pets.add(NewPet(chance.choice(["Rex", "T-Rex", "Sam"]), n % 2, status), ACTOR)
        ids += [added.pet.id] if "Rex" in added.pet.name else []
    await settled(store)
    for newest_first in (True, False):
        seen, place = list[int](), 0
        while True:
            page = await store.search.find(SearchQuery(SearchKind.PETS, "rex", 3, place, newest_first))
            assert page is not None
            seen += page.ids
            if not page.next_start:
                break
            place = page.next_start
        assert seen == sorted(ids, reverse=newest_first)
    sold = SearchQuery(SearchKind.PETS, "rex", 3, conditions={"status": "sold", "category_id": 0})
    page = await store.search.find(sold)
    assert page is not None
    assert (page.ids, page.is_cut) == ((), True)
    assert page.next_start in ids
    assert await store.search.find(SearchQuery(SearchKind.PETS, " ", 3)) == SearchPage()


async def test_of_many_changes_since_the_index_a_bounded_number_is_looked_at(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer says that it may lack the last ones."""
    await index(store)
    monkeypatch.setattr("petstore.transactions.events.ENTRIES_SCANNED_MAX", 2)
    for _ in range(3):
        await store.pets.add(NewPet("Rex", 1), ACTOR)
    await settled(store)
    page = await store.search.find(SearchQuery(SearchKind.PETS, "rex", 50))
    assert page is not None
    assert (len(page.ids), page.is_late) == (2, True)


async def test_a_restored_store_makes_its_index_again(store: Store) -> None:
    """A restored store makes its index again; before that a search finds nothing, and says so."""
    await store.pets.add(NewPet("Rex", 1), ACTOR)
    await index(store)
    await store.events.note_restore(ACTOR)
    await settled(store)
    assert await store.search.find(SearchQuery(SearchKind.PETS, "rex", 50)) is None
    await index(store)
    assert len(await found(store, "rex")) == 1


async def test_an_index_of_another_format_is_made_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older release does not read that of a newer one."""
    await store.pets.add(NewPet("Rex", 1), ACTOR)
    await index(store)
    for module in ("transactions.search", "transactions.rows"):
        monkeypatch.setattr(f"petstore.{module}.FORMAT", FORMAT - 1)
    assert await store.search.find(SearchQuery(SearchKind.PETS, "rex", 50)) is None
    assert not await store.search.step()
    for module in ("transactions.search", "transactions.rows"):
        monkeypatch.setattr(f"petstore.{module}.FORMAT", FORMAT + 1)
    assert await store.search.index.progress() is None


async def test_the_index_of_a_newer_release_is_made_again_once_that_is_gone(
    store: Store, clock: ManualClock
) -> None:
    """A newer release's index, also of unknown kinds, is made again once that release is gone, not before."""
    await store.pets.add(NewPet("Rex", 1), ACTOR)
    await index(store)
    own = await store.search.index.progress()
    assert own is not None
    tags = cast(SearchKind, "tags")
    for building, after_id in ((tags, 1), (tags, 2), (None, 0)):
        newer = IndexProgress(own.bookmark, building, after_id, format=FORMAT + 1)
        await store.search.index.put({}, await store.search.index.progress(), newer)
        for seconds in (0, 599):
            clock.advance(seconds)
            assert not await store.search.step()
        assert await store.search.find(SearchQuery(SearchKind.PETS, "rex", 50)) is None
    clock.advance(1)
    await index(store)
    assert len(await found(store, "rex")) == 1


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
async def test_a_damaged_or_deleted_index_is_made_again(backend: SharedData, tmp_path: Path) -> None:
    """It holds nothing that is not in the database, so nobody is asked."""
    store = backend.open()
    await store.pets.add(NewPet("Rex", 1), ACTOR)
    await index(store)
    await store.close()
    (tmp_path / "contract.db-search").write_bytes(b"no database" * 1_000)
    (tmp_path / "contract.db-search-wal").unlink()
    store = backend.open()
    with pytest.raises(StoreUnavailable):
        await store.search.step()
    for _ in range(2):
        await index(store)
        assert len(await found(store, "rex")) == 1
        (tmp_path / "contract.db-search").unlink()


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
async def test_an_index_that_cannot_be_opened_stops_no_page(backend: SharedData, tmp_path: Path) -> None:
    """A search says that there is none, as before the first one is made; afterwards it is made."""
    (tmp_path / "contract.db-search").mkdir()
    store = backend.open()
    await store.pets.add(NewPet("Rex", 1), ACTOR)
    assert await store.search.find(SearchQuery(SearchKind.PETS, "rex", 50)) is None
    with pytest.raises(StoreUnavailable):
        await store.search.step()
    (tmp_path / "contract.db-search").rmdir()
    await index(store)
    assert len(await found(store, "rex")) == 1


_HOLDS = """import apsw, sys
opened = apsw.Connection(sys.argv[1])
print(*opened.execute("SELECT 1 FROM progress"))
input()"""


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
async def test_an_index_that_two_processes_use_may_be_deleted(backend: SharedData, tmp_path: Path) -> None:
    """What SQLite keeps beside it goes as well, also while another process has it open."""
    store = backend.open()
    await store.pets.add(NewPet("Rex", 1), ACTOR)
    await index(store)
    words = sys.executable, "-c", _HOLDS, str(tmp_path / "contract.db-search")
    other = await asyncio.create_subprocess_exec(*words, stdin=PIPE, stdout=PIPE)
    assert other.stdout is not None
    await other.stdout.readline()
    (tmp_path / "contract.db-search").unlink()
    await index(store)
    await other.communicate(b"\n")
    assert len(await found(store, "rex")) == 1
    store = backend.open()
    await index(store)
    assert len(await found(store, "rex")) == 1
