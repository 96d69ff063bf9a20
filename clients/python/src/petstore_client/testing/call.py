"""A request that the fake carries out."""

from __future__ import annotations

import re
from typing import NamedTuple

from petstore_client.testing.messages import Request
from petstore_client.testing.windows import Access, Key


class Row(NamedTuple):
    """One operation. `{id}` in its path is an animal's or order's."""

    name: str
    method: str
    path: str
    access: Access
    parameters: tuple[str, ...] = ()


class Call:
    """A request that may do what it asks for."""

    def __init__(self, row: Row, request: Request, key: Key) -> None:
        self.row, self.key = row, key
        self.headers, self.content = request.headers, request.content
        self.path, _, self.query = request.target.partition("?")
        self.id = read_id(self.path.rpartition("/")[2])


def read_id(text: str) -> int | None:
    """A positive int64 in its canonical form."""
    is_one = re.fullmatch(r"[1-9][0-9]{0,18}", text, re.ASCII) and int(text) < 2**63
    return int(text) if is_one else None
