"""Readings of logs are kept: causes of failures, and answers to questions."""
