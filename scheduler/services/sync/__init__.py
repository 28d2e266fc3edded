"""Messages of nodes, applied."""
