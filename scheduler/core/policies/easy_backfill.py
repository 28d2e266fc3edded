"""EASY backfill: later jobs may use what the first waiting job cannot.

The order is otherwise first in, first out within a priority. Source: Lifka, The ANL/IBM SP scheduling system,
JSSPP 1995 (`scheduler.core.cycle.reserving`).
"""

from __future__ import annotations

from scheduler.core.cycle.cycle import AHEAD
from scheduler.core.cycle.options import CycleOptions, HeadOfLine
from scheduler.core.cycle.ranked import Ranked
from scheduler.core.policies.fifo import by_arrival
from scheduler.core.types import Description

EASY = Ranked(
    "easy",
    by_arrival,
    CycleOptions(blocks=HeadOfLine.RESERVATION),
    behind=AHEAD,
    steady=True,
    description=Description(
        summary="First come, first served; later jobs fill gaps where no delay is predicted.",
        order="submission; later jobs fill gaps that do not delay the first waiting one",
        needs="durations, running jobs",
        source="Lifka 1995",
    ),
)
