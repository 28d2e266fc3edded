"""A file of events."""
