"""What the pages of the pictures said and offered when these were made."""

from __future__ import annotations

import http.client
import time
from collections.abc import Mapping
from pathlib import Path

from petstore.core.people import Role
from tools.pictures.scenes import SCENES
from tools.pictures.structure import structure

FOLDER = Path(__file__).parents[2] / "docs" / "console" / "pictures"
MANIFEST = FOLDER / "manifest.txt"
_COUNTING = "The store is being counted."
_TIMEOUT_SECONDS = 20.0
_LOOK_AGAIN_SECONDS = 0.1


def describe(port: int, tokens: Mapping[Role, str]) -> str:
    """A section for each picture, with its address and a line for each thing on the page.

    Raises RuntimeError for a page that is not there.
    """
    sections = []
    wait_until_counted(port, tokens[Role.STAFF])
    for scene in SCENES:
        target = f"/console/{scene.address}".rstrip("/")
        lines = structure(_page(port, target, tokens[scene.role]))
        sections.append("\n".join([f"# {scene.name}: {target} ({scene.role})", *lines, ""]))
    return "\n".join(sections)


def wait_until_counted(port: int, token: str) -> None:
    """Wait until the overview has the sums, which a server counts beside its requests. Raises
    TimeoutError."""
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while _COUNTING in _page(port, "/console", token):
        if time.monotonic() > deadline:
            raise TimeoutError("The overview has no sums.")
        time.sleep(_LOOK_AGAIN_SECONDS)


def _page(port: int, target: str, token: str) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        headers = {"Accept": "text/html", "Cookie": f"petstore-session={token}"}
        connection.request("GET", target, headers=headers)
        answer = connection.getresponse()
        body = answer.read().decode()
    finally:
        connection.close()
    if answer.status != 200:
        raise RuntimeError(f"{target} was answered {answer.status}")
    return body
