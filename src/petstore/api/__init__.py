"""The interface under /v1: JSON over HTTP, one straight pipeline without a framework."""
