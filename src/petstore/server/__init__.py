"""The processes that serve: a parent that only watches (supervisor.py), and workers (worker.py)."""
