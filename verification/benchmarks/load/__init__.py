"""Load generators: wrk where it is installed, else a bundled one; and an open-loop one for latency."""
