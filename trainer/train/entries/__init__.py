"""What a recipe's `entry` names: a module each, with `train`."""
