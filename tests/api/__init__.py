"""Requests to the production service in process, by operation and status; every answer is checked whole."""
