"""Tiresias as AdaptDL's simulator has it.

One limit, in a queue by submission, any free GPUs, no rules on preemption.
"""

from __future__ import annotations

from scheduler.core.cycle.options import CycleOptions, HeadOfLine
from scheduler.core.cycle.ranked import Ranked
from scheduler.core.placement.fit import Placement
from scheduler.core.policies.least_attained import by_queues
from scheduler.core.types import Description

LIMITS_GPU_S = (57_600.0,)

ADAPTDL = Ranked(
    "tiresias-adaptdl",
    by_queues(LIMITS_GPU_S, promotion=0, by_submission=True),
    CycleOptions(
        blocks=HeadOfLine.NOTHING,
        preempts=True,
        placement=Placement.DISTRIBUTED,
        min_run_s=0.0,
        cooldown_s=0.0,
    ),
    round_s=60.0,
    description=Description(
        summary="Tiresias as AdaptDL simulates it: one limit, any free GPUs; for comparison.",
        order="one limit at 57,600 GPU-s, submission within a queue, any free GPUs",
        needs="nothing",
        source="AdaptDL's simulator",
    ),
)
