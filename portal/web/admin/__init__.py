"""Pages of the catalogue, the policy and the audit record."""
