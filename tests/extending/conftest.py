"""Toys and their proofs belong into a copy of the tree, where they are collected."""

collect_ignore = ["toys", "proofs"]
