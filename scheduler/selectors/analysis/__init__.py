"""Figures over periods, people and the cluster."""
