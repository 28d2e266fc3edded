"""Reading a sentence.

These are pure functions of its text and of the setting in which it was said.
"""
