"""The version of this distribution."""

from __future__ import annotations

__version__ = "1.1.0"
