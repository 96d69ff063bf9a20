"""The processes of a service: a parent that supervises, and workers that serve."""

from __future__ import annotations

import sys

if "rich" not in sys.modules:
    # structlog imports it where it is installed, for a way to show errors that the log does not use. That is
    # a tenth of a start, and 3 MiB.
    sys.modules["rich"] = None  # type: ignore[assignment]
    import structlog  # noqa: F401

    del sys.modules["rich"]
