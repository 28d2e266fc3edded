"""The cluster divided among jobs."""
