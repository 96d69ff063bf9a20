"""Limits: plans, windows and bans as arithmetic, Decisions, and protocols for counters."""
