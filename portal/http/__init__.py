"""Middleware, error pages and static files."""
