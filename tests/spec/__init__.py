"""The Pet Store Service Interface Specification 1.0.0, by sentence; table.py maps each to its test."""
