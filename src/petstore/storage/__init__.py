"""Databases behind the repositories: one package for each. Only these contain SQL."""
