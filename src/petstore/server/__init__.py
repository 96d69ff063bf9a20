"""The processes of a service: a parent that supervises, and workers that serve."""
