"""Resources of markets."""
