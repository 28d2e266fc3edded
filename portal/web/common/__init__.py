"""Form bases and partial pages."""
