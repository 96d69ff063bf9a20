"""Shared by all pages: content, static files, negotiation, the address of the service."""
