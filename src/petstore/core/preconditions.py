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

_GZIP = b'-gzip"'  # ends a tag

# A resource as the bytes of an answer, of which its tag is made.
encode = msgspec.json.Encoder().encode


def tag_of(representation: bytes) -> bytes:
    """The strong entity tag of these bytes: 96 bits of SHA-256."""
    return b'"%b"' % hexlify(digest(representation)[:12])


def read_tags(value: bytes) -> Tags | None:
    """The tags in the value of If-Match or If-None-Match; None for a malformed one."""
    if value.strip(b" \t") == ANY:
        return frozenset({ANY})
    return frozenset(_TAGS.findall(value)) if _LIST.fullmatch(value) else None


def other_coding(tag: bytes) -> bytes:
    """The tag of the same representation in gzip; for a tag of gzip, the tag of the plain bytes. Each coding
    has a strong tag of its own (RFC 9110, 8.8.3.3).
    """
    return tag[: -len(_GZIP)] + b'"' if tag.endswith(_GZIP) else tag[:-1] + _GZIP


def find_weakly(tags: Tags, tag: bytes) -> bytes | None:
    """The strong `tag`, or that of its other coding, if `tags` has it by the weak comparison (RFC 9110,
    13.1.2); None if they have neither."""
    for each in (tag, other_coding(tag)):
        if each in tags or b"W/" + each in tags:
            return each
    return tag if ANY in tags else None


def check_match(tags: Tags | None, resource: object) -> None:
    """Raise PreconditionFailed unless a resource, which exists, has one of the tags by the strong comparison
    (RFC 9110, 13.1.1), in either coding. `resource` is what its answer encodes. None: there is no condition.
    """
    if tags is None or ANY in tags:
        return
    tag = tag_of(encode(resource))
    if tag in tags or other_coding(tag) in tags:
        return
    if find_weakly(tags, tag) is not None:  # reading it again would not help
        raise PreconditionFailed(
            "It is as If-Match says, but a proxy has made the tag weak, and a weak one never holds."
            " Nothing was changed; send the tag without W/."
        )
    raise PreconditionFailed(
        "It is not as If-Match says: somebody has changed it since. Nothing was changed; read it again."
    )
