"""Shared by all pages: content, static files, routes, slots, the address of the service."""
