"""The stream of events: what happened to jobs, nodes and other objects."""
