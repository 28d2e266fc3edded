"""The trade of a recommendation: its gain and its price against the runner-up."""

from __future__ import annotations

from collections.abc import Sequence

from knowledge.core.domain.types import Option, Source, all_priced

ALIKE = 0.01  # differences below a percent are no trade


def trade(options: Sequence[Option]) -> str:
    """Compare the first option with the second in one sentence.

    It is empty without a second. Money is compared where both have a price, else GPU time. Percentages are of
    the runner-up's figures.
    """
    if len(options) < 2 or any(option.source is Source.DEFAULT for option in options[:2]):
        return ""
    best, other = options[:2]
    time = _change(best.duration_s.value / other.duration_s.value)
    if all_priced(options[:2]):
        cost = _change(best.cost.value / other.cost.value)
        spent = f"costs {cost}" if cost else "costs the same"
    else:
        gpu_time = _change(best.duration_s.value * best.gpus / (other.duration_s.value * other.gpus))
        spent = f"uses {gpu_time} GPU time" if gpu_time else "uses as much GPU time"
    takes = f"takes {time} time" if time else "takes as long"
    return f"Compared with {other.gpus} × {other.gpu_model}, the runner-up, it {takes} and {spent}."


def _change(ratio: float) -> str:
    """A ratio as a change in words, as in "11% less"; empty where both are alike."""
    if abs(ratio - 1) < ALIKE:
        return ""
    return f"{abs(ratio - 1):.0%} {'more' if ratio > 1 else 'less'}"
