"""What staging is filled with: a cut of production, or animals made from a seed."""

from __future__ import annotations

from random import Random

import msgspec

ANIMALS_MAX = 100_000
_SPECIES = (
    ("Dogs", "Rex Bella Max Luna Charlie Daisy Cooper Molly Buddy Rocky"),
    ("Cats", "Mia Simba Cleo Oreo Felix Lily Tiger Smokey Misty Leo"),
    ("Rabbits", "Thumper Clover Snowball Flopsy Pippin Biscuit"),
    ("Birds", "Kiwi Mango Sunny Rio Skye Polly"),
    ("Fish", "Nemo Dory Goldie Neptune Coral"),
)
# As a shop has them: most can be bought.
_STATUSES = ("available",) * 7 + ("pending",) + ("sold",) * 2


class Content(msgspec.Struct, frozen=True):
    """Rows by the columns of transactions/staging.py: animals by id, names of categories, accounts."""

    pets: list[tuple[object, ...]] = []
    categories: list[tuple[object, ...]] = []
    accounts: list[tuple[object, ...]] = []


def seeded(seed: int, animals: int) -> Content:
    """A catalogue of made-up animals, equal for equal seeds; no accounts."""
    random = Random(seed)
    pets: list[tuple[object, ...]] = []
    for pet_id in range(1, animals + 1):
        category = random.randrange(len(_SPECIES))
        name = random.choice(_SPECIES[category][1].split())
        pets.append((pet_id, name, category + 1, random.choice(_STATUSES)))
    return Content(pets, [(number, name) for number, (name, _) in enumerate(_SPECIES, 1)])
