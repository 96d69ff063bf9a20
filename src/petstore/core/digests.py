"""SHA-256, of keys, tokens and representations: a slow hash is for secrets with little entropy."""

from __future__ import annotations

from hashlib import sha256


def digest(data: bytes) -> bytes:
    """SHA-256 of the data, 32 bytes."""
    return sha256(data).digest()
