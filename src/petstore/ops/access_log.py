"""The access log's entries, one for each answered request, and the lines that they become.

A request makes an entry, in about a microsecond; the log's thread makes the line (logs.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec


class AccessEntry(msgspec.Struct, gc=False):
    """One answered request. Never the key, and nothing that a client can write at will but the request id."""

    at_ms: int
    request_id: str
    account: int | None
    key: int | None
    operation: str
    status: int
    milliseconds: float


def json_lines(entries: Sequence[AccessEntry]) -> bytes:
    """One JSON object a line."""
    encoder = msgspec.json.Encoder()
    return encoder.encode_lines(
        [
            {
                "time": datetime.fromtimestamp(entry.at_ms / 1_000, UTC),
                "event": "request",
                "request_id": entry.request_id,
                "account": entry.account,
                "key": entry.key,
                "operation": entry.operation,
                "status": entry.status,
                "ms": entry.milliseconds,
            }
            for entry in entries
        ]
    )


def text_lines(entries: Sequence[AccessEntry]) -> bytes:
    """For people at a terminal."""
    lines = []
    for entry in entries:
        time = datetime.fromtimestamp(entry.at_ms / 1_000, UTC).strftime("%H:%M:%S.%f")[:-3]
        who = "-" if entry.account is None else f"{entry.account}/{entry.key}"
        lines.append(
            f"{time} {entry.status} {entry.operation:<10} {entry.milliseconds:>8.3f} ms"
            f"  account/key {who}  request {entry.request_id}\n"
        )
    return "".join(lines).encode()
