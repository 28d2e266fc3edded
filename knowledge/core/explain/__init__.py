"""Reasons for recommendations, and for their absence."""
