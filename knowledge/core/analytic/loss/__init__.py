"""Memory of logits and of the loss that is made of them."""
