"""An optional language model that reads what the rules leave open."""
