"""Versions of the predictor.

They have files, are learnt, promoted and loaded, and their promises are watched.
"""
