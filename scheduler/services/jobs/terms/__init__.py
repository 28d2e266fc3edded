"""Wishes of a job beside its training: closeness, spot nodes, a time limit."""
