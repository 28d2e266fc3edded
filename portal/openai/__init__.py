"""The contract of OpenAI's fine-tuning API under /v1 and Azure's prefixes.

A translation of the REST API: the same services and selectors, and its objects in one extra key, `portal`.
"""
