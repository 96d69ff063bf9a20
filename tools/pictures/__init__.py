"""`make pictures`: the pictures of the console in docs/console, from the store of `make demo`."""
