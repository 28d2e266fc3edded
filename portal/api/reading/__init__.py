"""Sentences and scripts over REST."""
