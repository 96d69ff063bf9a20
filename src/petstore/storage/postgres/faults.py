"""Translates the driver's errors: the store's message, and whether the statement may be repeated.

The driver's text is dropped: it may quote data, and the address with its password.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg

from petstore.core.errors import ConfigurationError, StoreUnavailable
from petstore.storage.failures import failure

# Serialization failure and deadlock: the server failed this transaction so that others go on. Unique
# violation: another transaction has added the same since a script looked; a repetition sees its row.
_COLLISIONS = ("40001", "40P01", "23505")
# The server is shutting down, has crashed or is starting.
_GONE = ("57P01", "57P02", "57P03", "57P05")
# No privilege; no such function or feature.
_REFUSED = ("42501", "42883", "0A000")
# The server is a standby: another connection may reach the primary.
_READ_ONLY = "25006"

_SHARED_SESSIONS = "it is behind PgBouncer in transaction mode; set PETSTORE_DATABASE_PREPARED=off"
_MEANINGS = {
    **dict.fromkeys((*_COLLISIONS, "55P03"), "it is busy with other writes"),
    "57014": "it took too long",
    "53100": "its disk is full",
    "53200": "it has no memory left",
    "53300": "it takes no further connections",
    "2200H": "the range of identifiers is full",
    "25006": "it can't be written to: it is a copy, or default_transaction_read_only is on",
    "57P01": "it is shutting down",
    "57P02": "it has crashed",
    "57P03": "it is starting up",
    "28000": "it refuses the user of PETSTORE_DATABASE_URL",
    "28P01": "it refuses the password of PETSTORE_DATABASE_URL",
    "3D000": "it has no such database; create it first",
    "42501": "the user of PETSTORE_DATABASE_URL may not do this",
    **dict.fromkeys(("42P05", "26000"), _SHARED_SESSIONS),
    "42P01": "its schema is incomplete; `petstore db migrate` completes it",
}
_UNREACHABLE = "it can't be reached"
# Waiting does not help against these.
_SETTINGS = ("28000", "28P01", "3D000", "42501", "42P05", "26000")
_REMEDIES = {
    "42501": "; GRANT CREATE ON SCHEMA public TO it, or let the database's owner run `petstore db migrate`"
}


class Repeatable(StoreUnavailable):
    """Nothing was stored, and a repetition may succeed at once."""


def is_the_drivers(error: BaseException) -> bool:
    """Whether the error comes from the database or the connection, not from our code."""
    return isinstance(
        error, asyncpg.PostgresError | asyncpg.InterfaceError | asyncpg.InternalClientError | OSError
    )


def is_lost(error: BaseException) -> bool:
    """Whether the connection is unusable, and idle ones probably are."""
    return _has_gone(error) or _was_not_sent(error) or _state(error) == _READ_ONLY


def is_refused(error: BaseException | None) -> bool:
    """Whether the server lacks the feature or the user the privilege."""
    return _state(error) in _REFUSED


def is_answer(error: BaseException) -> bool:
    """Whether the statement was certainly refused, by the server or by the driver before sending."""
    if _was_not_sent(error):
        return True
    return isinstance(error, asyncpg.PostgresError | asyncpg.InterfaceError) and not _has_gone(error)


def _was_not_sent(error: BaseException) -> bool:
    """Whether the server announced the end of an idle connection, and its close was not noticed yet."""
    return isinstance(error, asyncpg.InternalClientError) and "another operation" in str(error)


def _has_gone(error: BaseException) -> bool:
    # TimeoutError is an OSError.
    return isinstance(error, asyncpg.PostgresConnectionError | OSError) or _state(error) in _GONE


def may_repeat(error: BaseException) -> bool:
    """Whether a repetition may succeed at once, provided that nothing was kept."""
    return _state(error) in _COLLISIONS or (is_lost(error) and not isinstance(error, TimeoutError))


def translate(error: Exception, outcome: str = "", *, repeatable: bool = False) -> Exception:
    """The store's error for one of the driver's; other errors pass unchanged.

    `outcome` continues the sentence with the fate of the write; an unknown one is never repeatable.
    """
    if isinstance(error, ConfigurationError):  # the settings were right at the start; the server has changed
        return failure(str(error).rstrip("."), outcome)
    if not is_the_drivers(error):
        return error
    return failure(_meaning(error), outcome, Repeatable if repeatable else StoreUnavailable)


@contextmanager
def translated(outcome: str = "") -> Iterator[None]:
    """Turn errors as `translate` does."""
    try:
        yield
    except Exception as error:
        raise translate(error, outcome) from error


def translate_at_start(error: Exception) -> Exception:
    """`translate` at the start, when a lasting refusal of the server is a ConfigurationError."""
    for each in (error.__cause__, error):
        if _state(each) in _SETTINGS:
            remedy = _REMEDIES.get(_state(each), "")
            return ConfigurationError(f"The database can't be used: {_MEANINGS[_state(each)]}{remedy}.")
    if isinstance(error, OSError) and _meaning(error) == _UNREACHABLE:
        return failure(f"{_UNREACHABLE}; check that it runs, and its address in PETSTORE_DATABASE_URL")
    return translate(error)


def _state(error: BaseException | None) -> str:
    """The SQLSTATE, or an empty text when the error is the driver's."""
    return str(getattr(error, "sqlstate", None) or "")


def _meaning(error: BaseException) -> str:
    # The server's message before it closed the connection is the cause of the driver's error.
    for each in (error.__cause__, error):
        if _state(each) in _MEANINGS:
            return _MEANINGS[_state(each)]
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    if isinstance(error, ssl.SSLError):
        why = getattr(error, "verify_message", error.reason)
        return f"its TLS is not what PETSTORE_DATABASE_URL insists on: {why}"
    if isinstance(error, ConnectionError) and "SSL" in str(error):
        return "it does not speak TLS, on which PETSTORE_DATABASE_URL insists"
    if isinstance(error, OSError):
        return _UNREACHABLE
    if isinstance(error, asyncpg.PostgresConnectionError):
        return "the connection to it broke"
    state = _state(error)
    return "it could not carry out the operation" + (f" (SQLSTATE {state})" if state else "")
