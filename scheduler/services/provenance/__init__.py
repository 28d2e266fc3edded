"""Where the values of a job were read: sealed, judged and kept."""
