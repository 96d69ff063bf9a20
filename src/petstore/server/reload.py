"""The settings that SIGHUP may change: not the addresses that the service has opened already."""

from __future__ import annotations

from urllib.parse import urlsplit

import msgspec

from petstore import config
from petstore.config import Settings
from petstore.core.errors import ConfigurationError, StoreUnavailable
from petstore.wiring import administration

SET_UP_AT_START = ("host", "port", "workers")


def renewed(old: Settings, new: Settings) -> Settings:
    """The new settings, with host, port and number of workers as at the start.

    Raises ConfigurationError, and StoreUnavailable when workers do not overlap and the new one could not
    reach its database.
    """
    _refuse_another("PETSTORE_DATABASE_URL", old.database_url, new.database_url)
    _refuse_another("PETSTORE_VALKEY_URL", old.valkey_url, new.valkey_url)
    if new.stage != old.stage:
        raise ConfigurationError("PETSTORE_STAGE: another one needs a stop of the service, and a start.")
    new = msgspec.structs.replace(new, **{name: getattr(old, name) for name in SET_UP_AT_START})
    config.check(new)
    try:
        check_store(new)
    except StoreUnavailable:
        if not new.valkey_url:  # with one the workers overlap, and the current ones go on
            raise
    return new


def check_store(settings: Settings) -> None:
    """Raise ConfigurationError where PostgreSQL refuses these settings, and for a file of an address.

    Raise StoreUnavailable where it can't be reached: no new worker would come to serve.
    """
    backend = administration.backend_of(settings)
    administration.check_files(settings)
    if backend.file is None:
        backend.schema()


def _refuse_another(name: str, old: str, new: str) -> None:
    """A new user or password is allowed. With a new address, old and new workers would serve two stores."""
    try:
        same = _is_same_address(old, new)
    except ValueError:  # its text may show a part of the password
        raise ConfigurationError(
            f"{name} is not understood. Write what is special in its password as %XX, such as %5B for [."
        ) from None
    if not same:
        raise ConfigurationError(
            f"{name}: another one needs a stop of every service that uses it, and a start."
        )


def _is_same_address(one: str, other: str) -> bool:
    """Whether two URLs differ at most in user and password. Raises ValueError."""
    before, after = (
        url._replace(netloc=url.netloc.rpartition("@")[2]) for url in (urlsplit(one), urlsplit(other))
    )
    return before == after
