"""The service in memory, for tests of programs that use the client."""

from __future__ import annotations

from petstore_client.testing.clock import Clock
from petstore_client.testing.fake import FakePetstore
from petstore_client.testing.messages import Request

__all__ = ["Clock", "FakePetstore", "Request"]
