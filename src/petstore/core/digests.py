"""SHA-256, of keys, tokens and representations: a slow hash is for secrets with little entropy."""

from __future__ import annotations

from hashlib import sha256

_EMPTY = sha256()


def digest(data: bytes) -> bytes:
    """SHA-256 of the data, 32 bytes. A copy, since OpenSSL looks the algorithm up for each new one: that cost
    a cached page 3 %.
    """
    hashed = _EMPTY.copy()
    hashed.update(data)
    return hashed.digest()
