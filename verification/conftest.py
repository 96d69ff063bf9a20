"""The suite's own rules for the short forms: what is measured, and that nothing is left open."""

from tests.conftest import _nothing_left_open, pytest_runtest_protocol

__all__ = ["_nothing_left_open", "pytest_runtest_protocol"]
