"""Callers of the service on a steered clock, behind networks that fail; `tests.torture client` runs many."""
