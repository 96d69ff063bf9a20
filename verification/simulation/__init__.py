"""Many processes in simulated time: the service's own limiter, gate and caches, on a network made up."""
