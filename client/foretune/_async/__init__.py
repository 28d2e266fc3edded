"""The client for programs with an event loop.

`_sync` is made from it (client/sync_half.py).
"""
