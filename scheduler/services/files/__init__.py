"""Stored files: uploads, artifacts and quotas."""
