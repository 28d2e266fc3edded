"""Markets, what was seen of them, and what was decided by it."""
