"""Traces, clusters and profiles, read from files."""
