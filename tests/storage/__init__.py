"""The stores: one body of tests for every store in contract/, and what is true of one alone."""
