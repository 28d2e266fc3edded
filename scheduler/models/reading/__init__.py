"""What was read for jobs and from their logs."""
