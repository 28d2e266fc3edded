"""Channels by which people and programs are told of events."""
