"""Nodes and calibrations over REST."""
