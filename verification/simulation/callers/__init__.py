"""Callers of the service on a steered clock, behind networks that fail: `make torture ARGS=client`."""
