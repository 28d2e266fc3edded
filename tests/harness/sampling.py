"""Which of many alike cases every run plays; the others are played on demand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def mostly_on_demand(cases: Iterable[Any], kept: Iterable[Any]) -> list[Any]:
    """All cases of one argument for `parametrize`, of which each run plays those in `kept`."""
    kept = list(kept)
    assert kept
    marked = [case if case in kept else pytest.param(case, marks=pytest.mark.slow) for case in cases]
    assert sum(case in kept for case in marked) == len(kept), "not all that are kept are cases"
    return marked
