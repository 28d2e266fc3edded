"""Files of the agent."""
