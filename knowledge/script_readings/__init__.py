"""Readings of scripts are kept: a changed upload costs what has changed."""
