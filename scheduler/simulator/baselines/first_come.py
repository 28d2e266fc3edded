"""First in, first out, and nobody passes.

They are Kavier's `consolidated-fcfs` and `distributed-fcfs`.

`fifo-strict`: gangs take the fewest nodes. `fifo-distributed`: gangs take any free GPUs.
"""

from __future__ import annotations

from scheduler.core.cycle.cycle import AHEAD
from scheduler.core.cycle.options import CycleOptions, HeadOfLine
from scheduler.core.cycle.ranked import Ranked
from scheduler.core.placement.fit import Placement
from scheduler.core.policies.fifo import by_arrival
from scheduler.core.types import Description

STRICT = Ranked(
    "fifo-strict",
    by_arrival,
    CycleOptions(blocks=HeadOfLine.ALL, placement=Placement.CONSOLIDATED),
    behind=AHEAD,
    steady=True,
    description=Description(
        summary="Strictly first come, first served; jobs take the fewest nodes.",
        order="submission; nobody passes, fewest nodes",
        needs="options",
        source="Kavier `consolidated-fcfs`",
    ),
)
DISTRIBUTED = Ranked(
    "fifo-distributed",
    by_arrival,
    CycleOptions(blocks=HeadOfLine.ALL, placement=Placement.DISTRIBUTED),
    behind=AHEAD,
    steady=True,
    description=Description(
        summary="Strictly first come, first served; jobs take any free GPUs.",
        order="submission; nobody passes, any free GPUs",
        needs="options",
        source="Kavier `distributed-fcfs`",
    ),
)
