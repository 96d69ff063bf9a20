"""What operators watch: health, metrics, logs, and the flusher that keeps counters over a restart."""
