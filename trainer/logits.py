"""The room that the trainer gives to logits.

The module is pure: predictions of memory read it as well as the trainer.
"""

from __future__ import annotations

from typing import Any

BYTES = 2**29  # of the logits that exist at one time, their copies and gradients included
BYTES_PER_LOGIT = 12  # float32: the logit, its logarithm of a probability, its gradient


def positions_at_once(vocabulary: Any) -> Any:
    """Return the positions of a micro-batch whose logits are computed together.

    They are 1 or more; `vocabulary` may be a number or an array.
    """
    return BYTES // (BYTES_PER_LOGIT * vocabulary) + 1
