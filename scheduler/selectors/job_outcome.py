"""Promised against actual: the same figures under the same names, for every door."""

from __future__ import annotations

from dataclasses import dataclass

from knowledge.core.domain.cost import cost
from knowledge.core.domain.types import Interval, Option, Source
from scheduler.models import Attempt
from trainer.protocol import Outcome

COMPARED = ("duration_s", "tokens_per_second", "peak_memory_bytes", "cost")
OF_A_WHOLE_RUN = frozenset({"duration_s", "cost"})  # a run that broke off says nothing about these


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedAndActual:
    """One promised figure with its interval, and what became of it; None is unknown."""

    name: str
    value: float | None
    low: float | None
    high: float | None
    actual: float | None
    final: bool = False

    @property
    def inside(self) -> bool | None:
        """Was the promise kept? None while that may still change, and where nothing was promised."""
        if not self.final or self.actual is None or self.low is None or self.high is None:
            return None
        return self.low <= self.actual <= self.high


def actual_of(attempt: Attempt) -> dict[str, float | None]:
    """Measured figures of the attempt. Durations run from its start to its end; waiting is apart."""
    ended = attempt.ended_at
    duration = attempt.lasted_s(ended) if ended else None
    return {
        "duration_s": duration,
        "tokens_per_second": attempt.figures.tokens_per_s,
        "peak_memory_bytes": attempt.peak_memory_bytes,
        "cost": _cost(attempt, duration),
    }


def _cost(attempt: Attempt, duration: float | None) -> float | None:
    """GPU-hours held times each node's price."""
    if duration is None:
        return None
    prices = [claim.node.price_per_gpu_hour * len(claim.allocations.all()) for claim in attempt.claims.all()]
    return cost(duration, sum(prices))


def compare(promise: Option | None, attempt: Attempt | None) -> list[PredictedAndActual]:
    """Each promised figure beside the attempt's; without an attempt the actual ones are None.

    Cost is left out where nodes have no price.
    """
    if promise and promise.source is Source.DEFAULT:  # its figures are zeros that promise nothing
        promise = None
    actual = actual_of(attempt) if attempt else {}
    ended = attempt is not None and attempt.ended_at is not None
    whole = attempt is not None and attempt.outcome == Outcome.SUCCEEDED
    lines = []
    for name in COMPARED:
        promised: Interval | None = getattr(promise, name, None)
        bounds = {bound: getattr(promised, bound, None) for bound in ("value", "low", "high")}
        if name != "cost" or bounds["value"]:
            final = whole if name in OF_A_WHOLE_RUN else ended
            lines.append(PredictedAndActual(name=name, actual=actual.get(name), final=final, **bounds))
    return lines
