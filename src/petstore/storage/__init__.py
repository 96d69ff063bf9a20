"""Databases behind the repositories: one package for each. SQL stands nowhere else."""
