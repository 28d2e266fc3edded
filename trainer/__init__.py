"""What runs on nodes: the agent and the trainer; and the release of all of Foretune."""

__version__ = "0.1.0"
