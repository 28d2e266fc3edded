"""Limits on bodies, guesses and concurrent work."""
