"""Errors, drift and the choice of experiments."""
