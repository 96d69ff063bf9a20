"""Counters behind the quota: in the process's memory (memory.py), and by client address (addresses.py)."""
