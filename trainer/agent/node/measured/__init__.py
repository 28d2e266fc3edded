"""Measurements of this node, kept in its folder and told with its facts."""
