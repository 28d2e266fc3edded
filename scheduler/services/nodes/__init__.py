"""The life of nodes."""
