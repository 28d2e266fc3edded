"""The policy and simulations over REST."""
