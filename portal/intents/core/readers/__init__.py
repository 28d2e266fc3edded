"""Readers by family of fields.

Each makes proposals, and none decides between them.
"""
