"""What the console costs: its pages in a large store, and what the rest of the service pays for it."""
