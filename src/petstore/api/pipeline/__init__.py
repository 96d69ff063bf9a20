"""What every request of /v1 passes, whatever its operation."""
