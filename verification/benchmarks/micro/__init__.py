"""The parts of one request, each alone, so that a regression has a name. Run them with `make micro`."""
