"""The stock of the demo: species, the categories that they are sold under, and names for each."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True)
class Species:
    """Animals of one category. `share` is how often they come among all new animals."""

    category_id: int
    category: str
    share: int
    names: tuple[str, ...]


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


SPECIES = (
    Species(1, "Dogs", 24, _names(
        "Rex Bella Max Luna Charlie Daisy Cooper Molly Buddy Sadie Rocky Maggie Bear Sophie Duke Chloe"
        " Tucker Zoe Jack Lola Oliver Penny Toby Ruby Winston Rosie Murphy Stella Bruno Nala Gus Willow"
        " Otis Hazel Finn Pepper Hank"
    )),
    Species(2, "Cats", 24, _names(
        "Mia Simba Cleo Oreo Nina Felix Lily Tiger Mimi Smokey Misty Leo Kitty Shadow Gizmo Jasper Poppy"
        " Salem Minnie Oscar Cali Ziggy Olive Loki Ginger Milo Phoebe Mittens Figaro Socks Marble Tabitha"
        " Pumpkin Sylvester Duchess"
    )),
    Species(3, "Rabbits", 12, _names(
        "Thumper Clover Bun Cinnamon Snowball Hazelnut Flopsy Pippin Biscuit Cottontail Juniper Waffles"
        " Peter Dandelion Oats Binky Mopsy Radish Truffle Nibbles"
    )),
    Species(4, "Guinea pigs", 10, _names(
        "Peanut Squeak Patches Cookie Popcorn Nugget Fudge Teddy Caramel Button Pickles Muffin Chestnut"
        " Bubbles Whisky"
    )),
    Species(5, "Birds", 12, _names(
        "Kiwi Mango Sunny Tweety Rio Skye Polly Blu Pearl Echo Zazu Coco Iago Paco Sparrow Robin Jade"
        " Admiral Piper"
    )),
    Species(6, "Fish", 8, _names(
        "Nemo Dory Bubble Goldie Neptune Finley Coral Marlin Pebbles Splash Captain Sushi Wanda Cleopatra"
        " Flash"
    )),
    Species(7, "Reptiles", 6, _names(
        "Spike Rango Draco Ziggurat Godzilla Shelly Franklin Basil Iggy Raphael Monty Pascal Koopa"
        " Sheldon"
    )),
    Species(8, "Ponies", 4, _names(
        "Spirit Dakota Misty-Blue Apollo Starlight Bluebell Hercules Domino Willowby Ranger"
    )),
)  # fmt: skip
_EPITHETS = ("Lady", "Sir", "Little", "Old", "Captain", "Miss", "Mister", "Princess")


def new_pet(random: Random) -> dict[str, object]:
    """A NewPet without a status. One name in eight has an epithet, so that few animals share one."""
    [species] = random.choices(SPECIES, [each.share for each in SPECIES])
    name = random.choice(species.names)
    if random.random() < 1 / 8:
        name = f"{random.choice(_EPITHETS)} {name}"
    return {"name": name, "categoryId": species.category_id}
