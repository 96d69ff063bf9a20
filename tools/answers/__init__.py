"""Records what the service and its commands say, so that two checkouts can be compared by `diff -r`."""
