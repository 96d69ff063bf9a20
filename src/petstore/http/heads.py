"""Heads of requests: their header lines, and targets in absolute form."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import Any

import msgspec

Headers = list[tuple[bytes, bytes]]

# RFC 9110, 4.2.1 and 4.2.2; RFC 9112, 3.2.2.
_ABSOLUTE = re.compile(rb"https?://([^/?#]*)(.*)", re.I | re.S)
# RFC 9110, 5.6.2. llhttp knows the registered methods alone; the application answers the others too.
METHOD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ")


class Head(msgspec.Struct, gc=False):
    """The header lines of a request, names in lower case, of at most `most_bytes`. What clients repeat is
    read once: `made` is what an application keeps with it, None at first."""

    headers: Headers
    most_bytes: int = sys.maxsize
    made: Any = None
    __repr__ = object.__repr__  # without the key


def value_of(headers: Headers, name: bytes) -> bytes:
    """The first value of a header; empty without it."""
    return next((value for each, value in headers if each == name), b"")


def in_origin_form(target: bytes, headers: Headers) -> tuple[bytes, Headers]:
    """A target and its headers as if it had come in origin form: an absolute one says the host (RFC 9112,
    3.2.2); two Host lines stay two, which are refused. Others (`*`, an authority) stay.
    """
    found = _ABSOLUTE.fullmatch(target)
    if found is None:
        return target, headers
    host, rest = found.groups()
    named = [(name, host if name == b"host" else value) for name, value in headers]
    if (b"host", host) not in named:
        named.append((b"host", host))
    return rest if rest[:1] == b"/" else b"/" + rest, named


def render(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Header lines as they are sent."""
    return b"".join([b"%b: %b\r\n" % header for header in headers])


def framing_of(headers: Headers) -> bytes:
    """The header lines that announce a body; empty without one."""
    names = {b"content-length", b"transfer-encoding"}
    return render(header for header in headers if header[0] in names)
