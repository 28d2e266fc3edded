"""Helpful changes as database rows keep them, in JSON values."""

from __future__ import annotations

from typing import Any

from knowledge.core.domain.types import Interval
from scheduler.core.changes.helpful import HelpfulChange


def change_json(one: HelpfulChange) -> dict[str, Any]:
    """Plain values; start and end are [value, low, high] in s since 1970."""
    option, end = one.option, one.forecast.end
    return {
        "kind": one.kind.value,
        "subject": one.subject,
        "change": dict(one.change),
        "start": _bounds(one.forecast.start),
        "end": _bounds(end) if end else None,
        "sooner_s": one.sooner_s,
        "gpu_model": option.gpu_model if option else None,
        "gpus": option.gpus if option else None,
        "nodes": option.nodes if option else None,
        "duration_s": option.duration_s.value if option else None,
        "cost": option.cost.value if option else None,
        "delayed": one.delayed,
        "delay_s": one.delay_s,
        "unfinished": one.unfinished,
    }


def _bounds(of: Interval) -> list[float | None]:
    return [of.value, of.low, of.high]
