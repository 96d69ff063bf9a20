"""Find, start, watch and end real servers as child processes: for tests, `make cluster` and benchmarks."""


class Unusable(RuntimeError):
    """A server is missing or does not work; the text says what to do."""
