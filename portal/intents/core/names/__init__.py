"""Names of things that the portal knows.

These are models, GPUs and files, found in what people write.
"""
