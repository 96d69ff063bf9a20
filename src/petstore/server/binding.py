"""The listening socket of the service, and the number of connections that its descriptor limit allows."""

from __future__ import annotations

import errno
import resource
import socket
import threading

import structlog

from petstore.core.errors import OperatorError
from petstore.http.server import BACKLOG
from petstore.ops.process import open_descriptors
from petstore.server import listener as listeners

_CONNECTIONS_MAX, _CONNECTIONS_FEW = 16_384, 100
_DESCRIPTORS_RESERVED = 128
_DESCRIPTORS_AT_START = 16  # reserved ones that are open by now; further open ones are inherited
# The workers of a killed parent hold the port for about a second, and end after five at the latest.
_BIND_ATTEMPTS, _BIND_PAUSE_SECONDS = 60, 0.05
# EINVAL: of a link-local one, which needs its interface.
_NO_ADDRESS_HERE = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.EINVAL)

_log = structlog.get_logger("petstore.parent")


def bind(host: str, port: int) -> socket.socket:
    """A bound socket that does not listen yet. Waits up to 3 s for a port in use. Raises OperatorError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:  # a system without IPv6
        raise _cannot_listen(host, port, error) from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if host == "::":
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        _bind_within_three_seconds(listener, host, port)
    except OSError as error:
        listener.close()
        raise _cannot_listen(host, port, error) from error
    listeners.prepare(listener)
    return listener


def _bind_within_three_seconds(listener: socket.socket, host: str, port: int) -> None:
    for left in reversed(range(_BIND_ATTEMPTS)):
        try:
            listener.bind((host, port))
            return
        except OSError as error:
            if error.errno != errno.EADDRINUSE or not left:
                raise
        threading.Event().wait(_BIND_PAUSE_SECONDS)


def listen(listener: socket.socket, host: str, port: int) -> None:
    """Raises OperatorError when another program listens on the address since `bind`."""
    try:
        listener.listen(BACKLOG)
    except OSError as error:
        raise _cannot_listen(host, port, error) from error


def _cannot_listen(host: str, port: int, error: OSError) -> OperatorError:
    if isinstance(error, socket.gaierror) or error.errno in _NO_ADDRESS_HERE:
        remedy = "Set PETSTORE_HOST to an address of this machine."
    elif error.errno in (errno.EACCES, errno.EPERM):
        remedy = "Set PETSTORE_PORT to 1024 or above, or give this user the right to use lower ports."
    else:
        remedy = "Stop what uses it, or set PETSTORE_HOST and PETSTORE_PORT."
    return OperatorError(f"Can't listen on {host}:{port}: {error.strerror or error}. {remedy}")


def raise_descriptor_limit(for_database: int) -> int:
    """Raise the soft limit of descriptors towards the hard one; returns how many are left for connections.

    Few are logged: each that a client keeps open without a request makes others wait.
    """
    inherited = max(0, open_descriptors() - _DESCRIPTORS_AT_START)
    reserved = _DESCRIPTORS_RESERVED + for_database + inherited
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _CONNECTIONS_MAX + reserved
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
        soft = allowed
    connections = max(1, (wanted if soft == resource.RLIM_INFINITY else min(wanted, soft)) - reserved)
    if connections < _CONNECTIONS_FEW:
        message = (
            f"The limit of {soft} open files has room for {connections} connections at a time; others wait."
            " Raise it (LimitNOFILE=, ulimit -n)."
        )
        _log.warning("start check", message=message)
    return connections
