"""Real processes: starts, stops, kills, replicas."""
