"""Planted bugs: small errors as they were, or might be, made here; each names the test that catches it."""
