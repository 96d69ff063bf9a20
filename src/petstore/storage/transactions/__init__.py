"""Every write of the service but two, written once for all databases; see script.py."""
