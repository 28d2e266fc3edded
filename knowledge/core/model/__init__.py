"""Estimators of what the analytic model gets wrong."""
