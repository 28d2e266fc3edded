"""Possible changes of a job that was submitted, and those that would help it."""
