"""Every test of a store may ask for one of each kind."""

from __future__ import annotations

from tests.support.backends import backend, database, store, url

__all__ = ["backend", "database", "store", "url"]
