"""Socket options of the listener, and how a process stops accepting without losing a connection.

Connections in the backlog are reset when the last process closes the listener, and a stop closes accepted
ones that have not sent a request. So new connections are refused first.
"""

from __future__ import annotations

import contextlib
import ctypes
import socket
import struct
import sys

# How long accepted connections are still served; a request follows its connection at once.
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
    """Set what the HTTP server expects of a listener that it did not open.

    Connections inherit TCP_NODELAY. Without it a pipelined response waits for the acknowledgement of the one
    before, possibly until the next request.
    """
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.setblocking(False)


def refuse_connections(listener: socket.socket) -> None:
    """Drop every SYN to the listener, in all processes that share it (Linux).

    A client sends the SYN again, finds the port closed and may go elsewhere; it has not sent a request.
    """
    if sys.platform == "linux":
        program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in _DROP_SYN))
        where = struct.pack("HP", len(_DROP_SYN), ctypes.addressof(program))
        with contextlib.suppress(OSError):  # not permitted: a few connections may be reset
            listener.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, where)
