"""Measured executions: their sources, values and splits."""
