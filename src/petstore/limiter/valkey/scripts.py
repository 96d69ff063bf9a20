"""The three Lua scripts, as text and as commands; the names of the keys that they work on."""

from __future__ import annotations

import hashlib

from petstore.core import packaged

# One hash tag: the versions are decided on together with every account, so all keys are in one slot.
TAG = b"{petstore}:"
CATALOGUE, KEYRING = TAG + b"version:catalogue", TAG + b"version:keyring"
CATALOGUE_WRITERS, KEYRING_WRITERS = TAG + b"writers:catalogue", TAG + b"writers:keyring"
EPOCH, HISTORY = TAG + b"epoch", TAG + b"history"
PROBE = TAG + b"probe"


def command(*parts: bytes) -> bytes:
    """A command as it goes over the wire."""
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts)


class Script:
    """A script's text and, by its digest, the short form that a server which knows it is asked with."""

    def __init__(self, text: str) -> None:
        self.text = text.encode("utf-8")
        self.digest = hashlib.sha1(self.text, usedforsecurity=False).hexdigest().encode("ascii")

    @property
    def load(self) -> bytes:
        """The command that makes a server know it."""
        return command(b"SCRIPT", b"LOAD", self.text)

    def in_full(self, evalsha: bytes) -> bytes:
        """The same call with the whole text, for a server that has forgotten the script."""
        head, _, rest = evalsha.partition(b"$7\r\nEVALSHA\r\n$40\r\n%b\r\n" % self.digest)
        return head + b"$4\r\nEVAL\r\n$%d\r\n%b\r\n" % (len(self.text), self.text) + rest


class Scripts:
    """All of them. (A test gives texts that read a time of its own.)"""

    def __init__(
        self, take: str | None = None, publish: str | None = None, arrive: str | None = None
    ) -> None:
        self.take = Script(take or text_of("take.lua"))
        self.publish = Script(publish or text_of("publish.lua"))
        arrive_text = (arrive or text_of("arrive.lua")).encode("utf-8")
        self.arrive = command(b"EVAL", arrive_text, b"4", EPOCH, HISTORY, CATALOGUE, KEYRING)


# A server that is full, or that may not write, answers a ping.
CAN_WRITE = command(b"SET", PROBE, b"1", b"PX", b"1000")


def text_of(name: str) -> str:
    """A script as it stands beside this module."""
    return packaged.files("petstore.limiter.valkey").joinpath(name).read_text(encoding="utf-8")
