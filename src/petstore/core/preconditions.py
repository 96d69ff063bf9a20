"""Conditional requests (RFC 9110, section 13): the tag of a representation, and what a client says of tags.

A tag is a digest of the bytes: it is the same on every replica and in both databases, and no column keeps it.
"""

from __future__ import annotations

import re
from binascii import hexlify

import msgspec

from petstore.core.digests import digest
from petstore.core.errors import PreconditionFailed

# The tags of If-Match or If-None-Match as they were sent, or ANY alone for `*`.
Tags = frozenset[bytes]
ANY = b"*"

_TAG = rb'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*+"'
_TAGS = re.compile(_TAG)
# RFC 9110, 5.6.1: a recipient takes empty elements.
_LIST = re.compile(rb"[ \t,]*+%b(?:[ \t]*+,[ \t,]*+%b)*+[ \t,]*+" % (_TAG, _TAG))

_encode = msgspec.json.Encoder().encode


def tag_of(representation: bytes) -> bytes:
    """The strong entity tag of these bytes: 96 bits of SHA-256."""
    return b'"%b"' % hexlify(digest(representation)[:12])


def read_tags(value: bytes) -> Tags | None:
    """The tags in the value of If-Match or If-None-Match; None for a malformed one."""
    if value.strip(b" \t") == ANY:
        return frozenset({ANY})
    return frozenset(_TAGS.findall(value)) if _LIST.fullmatch(value) else None


def has_weakly(tags: Tags, tag: bytes) -> bool:
    """Whether a strong tag is among others by the weak comparison (RFC 9110, 13.1.2)."""
    return tag in tags or b"W/" + tag in tags or ANY in tags


def check_match(tags: Tags | None, resource: object) -> None:
    """Raise PreconditionFailed unless a resource, which exists, has one of the tags by the strong comparison
    (RFC 9110, 13.1.1). `resource` is what its answer encodes. None: there is no condition.
    """
    if tags is None or ANY in tags or (tag := tag_of(_encode(resource))) in tags:
        return
    if b"W/" + tag in tags:  # reading it again would not help
        raise PreconditionFailed(
            "It is as If-Match says, but a proxy has made the tag weak, and a weak one never holds."
            " Nothing was changed; send the tag without W/."
        )
    raise PreconditionFailed(
        "It is not as If-Match says: somebody has changed it since. Nothing was changed; read it again."
    )
