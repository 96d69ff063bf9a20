"""For tests of programs that use the client: the service in memory."""

from __future__ import annotations

from petstore_client.testing.clock import Clock
from petstore_client.testing.fake import FakePetstore
from petstore_client.testing.messages import Request

__all__ = ["Clock", "FakePetstore", "Request"]
