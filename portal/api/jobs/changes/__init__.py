"""Changes that would let a waiting job start sooner, for programs."""
