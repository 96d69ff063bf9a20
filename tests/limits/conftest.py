"""Every test of a limiter may ask for one of each kind, and for the stores behind them."""

from __future__ import annotations

from tests.support.backends import backend, database, limiter_kind, store

__all__ = ["backend", "database", "limiter_kind", "store"]
