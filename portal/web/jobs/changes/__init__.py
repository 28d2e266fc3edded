"""What may be changed of a job that was submitted, and what changes would help it."""
