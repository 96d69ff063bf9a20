"""Limiters: one body of tests for every limiter in contract/, and what is true of one alone."""
