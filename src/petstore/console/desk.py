"""What all pages of the console work with, and its options."""

from __future__ import annotations

from collections import Counter
from zoneinfo import ZoneInfo

import msgspec

from petstore.console.passwords import Passwords
from petstore.console.statistics import Statistics
from petstore.core.client_address import Networks
from petstore.core.clock import Clock
from petstore.core.service import ReadState
from petstore.transactions.store import Repositories
from petstore.web.delivery import ChunkMaker


class ConsoleOptions(msgspec.Struct, frozen=True):
    """Settings of the service."""

    trusted: Networks  # the proxies whose headers count
    hosts: frozenset[str]  # the names of the service
    base: str  # the address for links; empty uses the address that the reader used
    body_timeout_seconds: float  # how long the next piece of a form may take to arrive
    environments: tuple[str, ...]  # what new keys may be for; the first, unless another is chosen
    overlap_ms: int  # how long a rotated key still works, unless another time is written
    sends_mail: bool  # whether it has a mail server
    is_staging: bool  # else the console is production's
    zone: ZoneInfo  # the shop's


class Desk(msgspec.Struct, frozen=True):
    """What all pages work with."""

    store: Repositories
    clock: Clock
    read_service: ReadState
    options: ConsoleOptions
    passwords: Passwords
    statistics: Statistics
    arriving: Counter[str]  # lists that arrive now, by their senders
    chunks: ChunkMaker  # produces one chunk at a time over all concurrent downloads
