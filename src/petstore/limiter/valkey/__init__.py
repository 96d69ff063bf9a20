"""Counters and versions that many processes share, in Valkey."""
