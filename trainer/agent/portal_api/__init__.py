"""Calls to the portal."""
