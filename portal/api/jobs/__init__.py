"""Jobs and their files over REST."""
