"""What the log of a training tells: figures, and answers to questions."""
