"""The writes and reports of both databases, written once; see script.py."""
