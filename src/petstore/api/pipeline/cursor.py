"""The cursor: the last identifier of a page, bound to the filter of the list.

16 characters of URL-safe base64: 8 bytes of identifier, 4 bytes of CRC-32 against mistakes. It is not
secret: a client that may list animals may start anywhere.
"""

from __future__ import annotations

import re
import struct
import zlib
from binascii import a2b_base64, b2a_base64
from functools import lru_cache

from petstore.core.errors import InvalidParameter
from petstore.core.pets import PageQuery, PetStatus

_FORM = re.compile(r"[A-Za-z0-9_-]{16}", re.ASCII)
_LAYOUT = struct.Struct(">qI")


@lru_cache(maxsize=256)
def _filter_checksum(status: PetStatus | None, ids: tuple[int, ...] | None) -> int:
    listed = ",".join(map(str, ids)) if ids is not None else "*"
    return zlib.crc32(f"{status or '*'}|{listed}".encode("ascii"))


def _checksum(after_id: int, status: PetStatus | None, ids: tuple[int, ...] | None) -> int:
    return zlib.crc32(b"%d" % after_id, _filter_checksum(status, ids))


def write(after_id: int, query: PageQuery) -> str:
    """The cursor of the page after `after_id` with this filter."""
    packed = _LAYOUT.pack(after_id, _checksum(after_id, query.status, query.ids))
    return b2a_base64(packed, newline=False).decode("ascii").replace("+", "-").replace("/", "_")


def read(cursor: str, status: PetStatus | None, ids: tuple[int, ...] | None) -> int:
    """The identifier in a cursor. Raises InvalidParameter unless it was made for this filter."""
    if _FORM.fullmatch(cursor) is not None:
        after_id: int
        after_id, checksum = _LAYOUT.unpack(a2b_base64(cursor.replace("-", "+").replace("_", "/")))
        if after_id > 0 and checksum == _checksum(after_id, status, ids):
            return after_id
    raise InvalidParameter(
        "cursor: not one that was given for this filter; follow the Link header, or start without a cursor."
    )
