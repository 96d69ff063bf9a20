# Made from _async/__init__.py by `python -m tools.sync_client`.
"""Everything that awaits: the client and its methods.

`python -m tools.sync_client` makes `_sync` of it, the same for threads. What differs beyond the awaiting has
two names, such as Pool and AsyncPool.
"""
