"""The command line: `petstore`. Each group of commands has a module, and main.py their table."""

from __future__ import annotations

try:
    from petstore.cli.main import main
except KeyboardInterrupt:  # before click, which has an answer to it, is there
    raise SystemExit(130) from None

__all__ = ["main"]
