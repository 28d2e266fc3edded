"""Pages of analytics, predictions, simulations and history."""
