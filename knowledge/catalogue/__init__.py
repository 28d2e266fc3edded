"""Models and GPUs that the portal knows.

Some are shipped, some added, and some read from folders and hubs.
"""
