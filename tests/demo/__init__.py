"""The store that `make demo` makes."""
