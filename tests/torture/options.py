"""The options of every campaign."""

from __future__ import annotations

import argparse


def campaign_parser(name: str, description: str | None, *, is_seeded: bool = True) -> argparse.ArgumentParser:
    """With the seed of the first round and the time for all of them; a campaign may add its own."""
    parser = argparse.ArgumentParser(prog=f"python -m tests.torture.{name}", description=description)
    seed = "of the first round (default: 1)" if is_seeded else "accepted as by every campaign, and not used"
    parser.add_argument("--seed", type=int, default=1, help=seed)
    parser.add_argument("--seconds", type=float, default=60, help="how long (default: 60)")
    return parser
