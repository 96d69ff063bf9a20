"""What operators watch: health, metrics, logs, and the journal that keeps counters over a restart."""
