"""Pages of markets."""
