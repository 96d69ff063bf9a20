"""The steps that every request under /v1 passes, whatever its operation."""
