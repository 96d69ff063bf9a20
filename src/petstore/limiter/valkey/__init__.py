"""Counters and versions that many processes share, in Valkey."""

from __future__ import annotations

from petstore.core.errors import ConfigurationError

try:
    import libvalkey as libvalkey
except ModuleNotFoundError as error:
    if error.name != "libvalkey":
        raise
    raise ConfigurationError(
        "PETSTORE_VALKEY_URL needs a driver that is not installed: `make setup-scale` installs it, and in an"
        " environment of your own `pip install '.[valkey]'` in this project's directory."
    ) from None
