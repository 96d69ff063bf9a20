"""What every store does with a search by the beginning of a name."""

from __future__ import annotations

from petstore.core.pets import (
    PETS_SCANNED_MAX,
    NameQuery,
    NewPet,
    Pet,
    PetStatus,
    lower_ascii,
)
from petstore.storage.store import Store
from tests.support.backends import SharedData
from tests.support.journal import ACTOR

AVAILABLE, SOLD = PetStatus.AVAILABLE, PetStatus.SOLD
LAST = "\U0010ffff"
NAMES = [
    *("Rex", "rex", "REX", "Rex II", "rexa", "Re", "Rey", "Sam", "rEX", " Rex", "re\u0301x", "R%x", "R_x"),
    *(
        "Äffchen",
        "äffchen",
        "@home",
        "Anna",
        "[box]",
        "`tick",
        "{brace}",
        "zoë",
        "Z",
        "🐕",
        "🐕 dog",
        "x" * 255,
    ),
    *(
        LAST,
        LAST * 255,
        "\ue000",
        "\uffff",
        "100%",
        "10",
        "K",
        "\u212a",
        "İstanbul",
        "istanbul",
        "\\",
        "'; --",
    ),
]


async def fill(store: Store, names: list[str], category: int = 1) -> list[Pet]:
    """Animals of these names in turn, every other one sold."""
    statuses = AVAILABLE, SOLD
    news = [NewPet(name, category, statuses[n % 2]) for n, name in enumerate(names)]
    return [(await store.pets.add(new, ACTOR)).pet for new in news]


def in_order(pets: list[Pet]) -> list[Pet]:
    return sorted(pets, key=lambda pet: (lower_ascii(pet.name), pet.id))


async def test_the_names_that_begin_so_in_their_order(store: Store) -> None:
    """Whatever the case of ASCII letters, and of no others; wildcards are letters like all. Equal names are
    in the order of identifiers."""
    pets = await fill(store, NAMES * 2)
    prefixes = {name[:length] for name in NAMES for length in (1, 3, 255)} | {
        "",
        "rEx",
        "nobody",
        "a",
        "A",
        "k",
    }
    for prefix in sorted(prefixes):
        expected = in_order([pet for pet in pets if lower_ascii(pet.name).startswith(lower_ascii(prefix))])
        for limit in (1, 50):
            assert await store.pets.find_by_name(NameQuery(prefix, limit)) == expected[:limit]


async def test_status_and_category_combine_with_a_name(store: Store) -> None:
    """Each alone, and both together."""
    pets = [*await fill(store, NAMES), *await fill(store, NAMES, category=-(2**63))]
    for prefix in ("r", "re", ""):
        for status in (None, *PetStatus):
            for category in (None, 1, -(2**63), 7):
                expected = [
                    pet
                    for pet in in_order(pets)
                    if lower_ascii(pet.name).startswith(prefix)
                    and status in (None, pet.status)
                    and category in (None, pet.category_id)
                ]
                for limit in (1, 3, 50):
                    query = NameQuery(prefix, limit, status, category)
                    assert await store.pets.find_by_name(query) == expected[:limit]


async def test_a_filter_that_nothing_matches_looks_at_a_bounded_number(
    backend: SharedData, store: Store
) -> None:
    """One that matches beyond is not found."""
    await store.close()
    values = ", ".join(["('rex', 1, 'available')"] * (PETS_SCANNED_MAX - 1))
    backend.execute(f"INSERT INTO pets (name, category_id, status) VALUES {values}")
    store = backend.open()
    within, _ = [(await store.pets.add(NewPet("Rex", 1, SOLD), ACTOR)).pet for _ in range(2)]
    assert await store.pets.find_by_name(NameQuery("re", 50, SOLD)) == [within]
