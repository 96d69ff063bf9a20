"""The pet store service. Here is only its version; `wiring` joins the parts, and `cli` is the way in."""

__version__ = "1.1.0"
