"""Capacity, inventory, calibrations and the queue."""
