"""When waiting jobs start: played in a worker, kept, asked for and judged."""
