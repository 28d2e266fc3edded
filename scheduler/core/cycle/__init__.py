"""One decision of a ranking policy."""
