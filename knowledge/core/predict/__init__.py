"""Predictions from own runs, history and the analytic model."""
