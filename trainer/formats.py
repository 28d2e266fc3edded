"""What training lines look like. Standard library only."""
