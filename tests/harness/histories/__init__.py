"""One history of jobs, played by the live loop and by the simulator."""
