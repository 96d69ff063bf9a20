"""PostgreSQL: a pool of connections for each process."""

from __future__ import annotations

from petstore.core.errors import ConfigurationError

try:
    import asyncpg as asyncpg
except ImportError as error:
    raise ConfigurationError(
        "PETSTORE_DATABASE_URL names PostgreSQL, and its driver is not installed: `make setup-scale`"
        " installs it, and in an environment of your own `pip install '.[postgres]'` in this project's"
        " directory."
    ) from error
