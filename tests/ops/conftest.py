"""The service in process, as for the tests of the API: each answer is checked as it arrives."""

from __future__ import annotations

from tests.api.conftest import shop

__all__ = ["shop"]
