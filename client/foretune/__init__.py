"""The client of a Foretune portal, of the portal's own release."""

__version__ = "0.1.0"
