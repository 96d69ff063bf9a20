"""Long campaigns: not part of the suite, started by hand with a seed and a budget."""
