"""Claims from their start to their report."""
