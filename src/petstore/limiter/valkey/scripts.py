"""The three Lua scripts as texts and commands, and the names of their keys."""

from __future__ import annotations

import hashlib
import re

from petstore.core import packaged
from petstore.core.limits.plans import WINDOWS

# One hash tag, so one slot: a script reads the versions together with the records of an account.
TAG = b"{petstore}:"
CATALOGUE, KEYRING = TAG + b"version:catalogue", TAG + b"version:keyring"
CATALOGUE_WRITERS, KEYRING_WRITERS = TAG + b"writers:catalogue", TAG + b"writers:keyring"
EPOCH, HISTORY = TAG + b"epoch", TAG + b"history"
PROBE = TAG + b"probe"
STAGE = TAG + b"stage"


def command(*parts: bytes) -> bytes:
    """A command as bytes of the protocol."""
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts)


class Script:
    """A script, and its SHA-1 by which a server that has loaded it runs it."""

    def __init__(self, text: str) -> None:
        self.text = text.encode("utf-8")
        self.digest = hashlib.sha1(self.text, usedforsecurity=False).hexdigest().encode("ascii")

    @property
    def load(self) -> bytes:
        """The command that loads it."""
        return command(b"SCRIPT", b"LOAD", self.text)

    def in_full(self, evalsha: bytes) -> bytes:
        """An EVALSHA call as EVAL with the text, for a server that no longer has the script."""
        head, _, rest = evalsha.partition(b"$7\r\nEVALSHA\r\n$40\r\n%b\r\n" % self.digest)
        return head + b"$4\r\nEVAL\r\n$%d\r\n%b\r\n" % (len(self.text), self.text) + rest


class Scripts:
    """All of them. Tests pass texts that read another clock."""

    def __init__(
        self, take: str | None = None, publish: str | None = None, arrive: str | None = None
    ) -> None:
        self.take = Script(take or text_of("take.lua"))
        self.publish = Script(publish or text_of("publish.lua"))
        arrive_text = (arrive or text_of("arrive.lua")).encode("utf-8")
        self.arrive = command(b"EVAL", arrive_text, b"4", EPOCH, HISTORY, CATALOGUE, KEYRING)


# Not PING: a server that is full or read-only answers that.
CAN_WRITE = command(b"SET", PROBE, b"1", b"PX", b"1000")


def text_of(name: str) -> str:
    """The text of a script in this folder, with each `{{...}}` once for each window: see take.lua."""
    text = packaged.files("petstore.limiter.valkey").joinpath(name).read_text()
    return re.sub(r"(?s)\{\{(.*?)\}\}", lambda braces: _for_each_window(braces[1]), text)


def _for_each_window(template: str) -> str:
    return "".join(
        template.replace("@LENGTH", str(window.length_ms))
        .replace("@OPENS", str(window.opens_ms))
        .replace("@UNIT", str(window.stored_ms))
        .replace("@", str(number))
        for number, window in enumerate(WINDOWS, start=1)
    )
