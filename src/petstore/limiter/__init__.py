"""The limiters: in memory, in Valkey (valkey/), and by client address (address_limiter.py)."""
