"""A policy on probation: what it would do with the jobs that really come."""
