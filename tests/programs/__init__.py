"""Programs as developers write them from the served pages."""
