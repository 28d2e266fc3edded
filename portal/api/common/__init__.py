"""Fields, parsers, pagination, errors and idempotency of the API."""
