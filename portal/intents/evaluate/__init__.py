"""How well sentences are read: a labelled set, its scoring, and a baseline."""
