"""Orders of jobs that policies rank by."""
