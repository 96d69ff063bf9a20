"""Databases behind the repositories: one package for each. What they share of SQL is in transactions/."""
