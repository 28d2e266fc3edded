"""Bounds of what a node may report.

They come from the job's own plan and from what hardware is.

They are wide: an honest node never meets them, whatever its trainer counts as a row or a token.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

FEWEST_COUNTED = 10_000  # rows and steps that any job may have
LONGEST_ROW = 2**20  # tokens
SLACK = 2.0
LONGEST_S = 366 * 86_400.0
FASTEST_TOKENS_PER_S = 1e9  # of all GPUs of a job
MOST_PARAMETERS = 1e14
LARGEST_CHECKPOINT_BYTES = 2**46


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The most that a job can have of each."""

    rows: float
    row_tokens: float
    tokens: float
    steps: float

    def of(self, name: str) -> float | None:
        """The bound of a figure that is reported; None for those without one."""
        return {
            "tokens_per_s": FASTEST_TOKENS_PER_S,
            "parameters": MOST_PARAMETERS,
            "trainable_parameters": MOST_PARAMETERS,
            "rows": self.rows,
            "row_tokens": self.row_tokens,
            "tokens_total": self.tokens,
            "tokens": self.tokens,
            "steps_total": self.steps,
            "total_steps": self.steps,
            "step": self.steps,
        }.get(name, LONGEST_S if name.endswith("_s") else None)


def bounds_of(*, rows: int, params: Mapping[str, Any]) -> Bounds:
    """Return the bounds of a job on a file of so many rows, with its parameters."""
    epochs = max(1.0, float(params.get("epochs") or 1.0))
    length = float(params.get("tokens_per_sample") or LONGEST_ROW)
    most_rows = max(FEWEST_COUNTED, SLACK * rows)
    steps = max(FEWEST_COUNTED, SLACK * ceil(rows * epochs), SLACK * (params.get("max_steps") or 0))
    row_tokens = most_rows * length * SLACK
    tokens = row_tokens * max(epochs, steps / most_rows)
    return Bounds(rows=most_rows, row_tokens=row_tokens, tokens=tokens, steps=steps)


def doubts_of_success(*, step: float, total_steps: int | None, has_output: bool) -> str:
    """Return what contradicts a success; empty if nothing does.

    Trainings that never said how many steps they take are believed.
    """
    if total_steps is None:
        return ""
    doubts = [f"at step {step:g} of {total_steps}"] if step < total_steps else []
    doubts += [] if has_output else ["without an output"]
    return " and ".join(doubts)
