"""Whether a training stood still: a silence far longer than usual."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from knowledge.core.domain.wording import rough_time
from knowledge.reading.logs.line_forms import LogPoint

TIMES, LEAST_S = 10, 60.0  # the usual silence; a shorter one is none
ENOUGH = 8  # silences; fewer tell nothing usual


def stalled(points: Sequence[LogPoint], silent_s: float | None = None) -> tuple[str, LogPoint] | None:
    """A sentence on the silence until now, else on the longest, and the line before.

    silent_s: since the last line of a training that runs.
    """
    timed = [one for one in points if one.seconds is not None]
    gaps = [((new.seconds or 0.0) - (old.seconds or 0.0), old) for old, new in pairwise(timed)]
    known = [gap for gap in gaps if gap[0] >= 0]
    if len(known) < ENOUGH:
        return None
    usual = median(gap for gap, _ in known)
    least = max(LEAST_S, TIMES * usual)
    if silent_s is not None and silent_s > least:
        said = f"It may have stalled: it has been silent for {rough_time(silent_s)}"
        return f"{said}, and usually for {rough_time(usual)}.", timed[-1]
    longest, before = max(known, key=lambda gap: gap[0])
    if longest > least:
        return f"It stood still for {rough_time(longest)} after this line.", before
    return None
