"""The command line: `petstore`. One module for each command family; this one only joins them."""

from __future__ import annotations

from petstore.cli.main import main

__all__ = ["main"]
