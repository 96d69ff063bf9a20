"""The steps of every request under /v1."""
