"""Databases that an argument of a command names, beside the database of PETSTORE_DATABASE_URL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from petstore.core.errors import ConfigurationError, OperatorError, StoreUnavailable

_SETTING = "PETSTORE_DATABASE_URL"
_WRONG_ADDRESS = (f"{_SETTING} is not understood", f"{_SETTING}: ")


class WrongArgument(OperatorError):
    """The command does not take the argument (exit 2)."""


def database_url(argument: str) -> str:
    """The URL of a database that is given as a URL, or as the path of a file."""
    return argument if "://" in argument else f"sqlite:///{argument}"


@contextmanager
def naming(argument: str) -> Iterator[None]:
    """Errors within name the argument instead of the setting. Raises WrongArgument for a wrong address."""
    try:
        yield
    except (OperatorError, StoreUnavailable) as error:
        text = str(error)
        named = text.replace(_SETTING, argument)
        if isinstance(error, ConfigurationError) and text.startswith(_WRONG_ADDRESS):
            raise WrongArgument(named) from error
        error.args = (named,)
        if isinstance(error, StoreUnavailable):
            error.message = named
        raise
