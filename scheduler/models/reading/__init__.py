"""Values that were read for jobs and from their logs."""
