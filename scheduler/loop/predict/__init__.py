"""Work of the queue `predict` with a snapshot; nothing of it is carried out."""
