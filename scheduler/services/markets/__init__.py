"""Markets of rented nodes: kept, sampled, forecast and asked."""
