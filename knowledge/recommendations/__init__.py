"""Requests for recommendations, from plain values to plain values."""
