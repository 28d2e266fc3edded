"""Reading sentences."""
