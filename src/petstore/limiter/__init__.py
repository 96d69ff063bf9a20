"""Counters behind the quota: in memory, in Valkey (valkey/), and by client address (address_limiter.py)."""
