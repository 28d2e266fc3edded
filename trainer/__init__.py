"""The node's part, agent and trainer, and the release of all of Foretune."""

__version__ = "0.1.0"
