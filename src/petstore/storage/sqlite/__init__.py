"""SQLite, embedded: one file, one writer thread, reads on the event loop."""

from __future__ import annotations

import apsw

from petstore.core.errors import ConfigurationError

# Below this version a WAL reset could corrupt the file; apsw's wheels carry a newer one.
_OLDEST = 3_051_003

if apsw.SQLITE_VERSION_NUMBER < _OLDEST:
    raise ConfigurationError(
        f"SQLite {apsw.sqlite_lib_version()} has a bug that can corrupt the database;"
        " install apsw's wheel from the lock file, which carries 3.51.3 or newer."
    )
