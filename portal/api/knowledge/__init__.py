"""Recommendations, the catalogue and executions over REST."""
