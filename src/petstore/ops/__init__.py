"""Health checks, metrics and logs, and the flusher that saves counters."""
