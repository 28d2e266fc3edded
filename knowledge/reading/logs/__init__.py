"""Logs of trainings: their figures, and answers to questions."""
