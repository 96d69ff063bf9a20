"""The client as a distribution of its own."""

from __future__ import annotations

from importlib.metadata import version

import petstore_client


def test_the_version_is_that_of_the_distribution() -> None:
    """`petstore_client.__version__` is what pip shows."""
    assert petstore_client.__version__ == version("petstore-client")
