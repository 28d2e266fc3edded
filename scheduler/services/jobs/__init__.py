"""The life of jobs and attempts."""
