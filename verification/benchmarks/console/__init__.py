"""What the console costs: its pages in a large store, and what a list waits for beside them."""
