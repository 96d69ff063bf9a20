"""Benchmarks that anyone can run: `make bench`. README.md says how to read them."""
