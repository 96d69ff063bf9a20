"""Free TCP ports of the loopback address, below those that the system gives to connections."""

from __future__ import annotations

import atexit
import random
import socket
import sys
from collections.abc import Iterator
from functools import cache
from itertools import cycle

_BLOCKS = range(12_000, 32_000, 200)


def is_free(port: int) -> bool:
    """Whether a program could listen on it."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_port() -> int:
    """A port without a listener, which no other process can get from this module at the same time."""
    return free_ports(1)[0]


def free_ports(count: int) -> range:
    """Return `count` free ports in a row."""
    ports = _ports()
    while True:
        found = [next(ports) for _ in range(count)]
        if found[-1] - found[0] == count - 1 and all(map(is_free, found)):
            return range(found[0], found[-1] + 1)


@cache
def _ports() -> Iterator[int]:
    """200 ports that belong to this process until it ends, again and again.

    On Linux the claim is a socket with an abstract name, which two processes can't bind. Elsewhere two
    processes may get the same block.
    """
    for first in random.sample(_BLOCKS, len(_BLOCKS)):
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            if sys.platform == "linux":
                claim.bind(f"\0petstore-ports-{first}")
        except OSError:
            claim.close()
            continue
        atexit.register(claim.close)
        return cycle(range(first, first + _BLOCKS.step))
    raise OSError("Every block of ports is in use.")
