"""People, teams and the audit record over REST."""
