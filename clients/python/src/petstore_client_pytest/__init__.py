"""The pytest plugin of petstore-client. Each run of pytest loads it, so only a test imports the client."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from petstore_client.testing import FakePetstore


# Not `petstore`: that is what a project calls its fixture of the real client.
@pytest.fixture
def fake_petstore() -> FakePetstore:
    """An empty pet store in memory, for one test."""
    from petstore_client.testing import FakePetstore

    return FakePetstore()
