"""Markets of rented nodes, and the jobs that must end in time on them; pure."""
