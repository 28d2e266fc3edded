"""Markets of rented nodes: kept, sampled, foretold and asked."""
