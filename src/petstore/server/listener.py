"""What a listener needs before it serves, and how a process leaves it so that no connection is lost.

What has connected and waits in the listener's queue is reset when the last process closes it, and what was
accepted and not read yet is closed by the HTTP server when it stops. So newcomers are turned away first.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import struct
import sys

# How long those who have come already are still served; a request follows its connection at once.
SETTLE_SECONDS = 0.05

_SO_ATTACH_FILTER = 26
_TCP_FLAGS, _SYN = 13, 0x02
_LOAD_BYTE, _SKIP_ONE_UNLESS_SET, _RETURN = 0x30, 0x45, 0x06
_DROP_SYN = (
    (_LOAD_BYTE, 0, 0, _TCP_FLAGS),
    (_SKIP_ONE_UNLESS_SET, 0, 1, _SYN),
    (_RETURN, 0, 0, 0),
    (_RETURN, 0, 0, 0xFFFF_FFFF),
)


def prepare(listener: socket.socket) -> None:
    """What the HTTP server expects of a listener that it has not made itself.

    Without TCP_NODELAY, which each connection inherits, an answer can wait until the client has acknowledged
    the one before: where requests are sent ahead of answers, until the next request.
    """
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.setblocking(False)


def turn_newcomers_away(listener: socket.socket) -> None:
    """For all who share the listener: new connections find nobody, as if the packet had been lost (Linux).

    A client tries again, meets the closed port and goes elsewhere; it has not sent anything.
    """
    if sys.platform == "linux":
        program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in _DROP_SYN))
        where = struct.pack("HP", len(_DROP_SYN), ctypes.addressof(program))
        with contextlib.suppress(OSError):  # forbidden here: then a few connections may be reset
            listener.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, where)


def leave_to_others(listener: socket.socket) -> None:
    """Stop accepting in this process; the backlog stays with the processes that share the listener.

    Its descriptor is made that of a listener to which nobody connects, so that the HTTP server may keep it.
    """
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.setblocking(False)
        os.dup2(silent.fileno(), listener.fileno())
