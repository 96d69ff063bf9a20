"""The suite's own rules for the short forms: what is measured, and that nothing is left open."""

from tests.conftest import _nothing_left, pytest_runtest_protocol

__all__ = ["_nothing_left", "pytest_runtest_protocol"]
