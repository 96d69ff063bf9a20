"""The recipes of ARCHITECTURE.md, "To add", applied to a copy."""
