"""Quotas of teams and limits of people, kept by every policy."""
