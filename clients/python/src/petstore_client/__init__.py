"""A client of the pet store service: it waits, retries and pages as the service asks."""

from __future__ import annotations

__version__ = "1.1.0"
