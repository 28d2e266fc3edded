"""Decisions as they are kept: read again, played again, and explained."""
