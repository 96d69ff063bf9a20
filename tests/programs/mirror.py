"""A mirror of the store by the Python client: all animals, and the bookmark of the last event."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from petstore_client import Event, EventsGone, Petstore

Animals = dict[str, dict[str, Any]]


def listed(petstore: Petstore) -> tuple[str | None, Animals]:
    """The whole store, and a bookmark from before the list."""
    bookmark = petstore.events.list(after="now").after
    return bookmark, {
        str(pet.id): {"id": pet.id, "name": pet.name, "categoryId": pet.category_id, "status": pet.status}
        for pet in petstore.pets.list()
    }


def apply(event: Event, animals: Animals) -> None:
    """What an event says, which may come twice."""
    pet_id = str(event.data["id"])
    if event.type == "pet.deleted":
        animals.pop(pet_id, None)
    elif event.type == "pet.created" or pet_id in animals:
        animals[pet_id] = {**animals.get(pet_id, {}), **event.data}
        animals[pet_id].pop("previous", None)


def mirror(petstore: Petstore, place: Path) -> None:
    """Keep bookmark and animals in one file, for ever."""
    bookmark, animals = json.loads(place.read_text()) if place.exists() else listed(petstore)
    while True:
        place.write_text(json.dumps([bookmark, animals]))
        follow = petstore.events.follow(after=bookmark, types=["pet.*"])
        try:
            for event in follow:
                apply(event, animals)
                place.write_text(json.dumps([follow.after, animals]))
        except EventsGone:
            bookmark, animals = listed(petstore)


if __name__ == "__main__":
    with Petstore(os.environ["PETSTORE_URL"], os.environ["PETSTORE_KEY"]) as client:
        mirror(client, Path(sys.argv[1]))
