"""Pages of people, teams and tokens."""
