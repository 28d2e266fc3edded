"""The search for configurations."""
