"""Campaigns of faults, the simulation, benchmarks: started by hand; tests import none of it."""
