"""The journal in tests: who makes the changes of a test."""

from __future__ import annotations

# Of changes whose actor a test says nothing about.
ACTOR = "cli:tests"
