"""Changes that would let a waiting job start sooner, and what they would cost.

`possible` lists changes, each with the queue as it would be; `trying` plays them ahead beside the queue as it
is, with the same luck; `helpful` keeps and ranks those that help.
"""
