"""A sentence becomes a filled form, shown before anything happens."""
