"""What a way of running a job would bring, from windows of the recorded market."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduler.core.market.deciders import Decider
from scheduler.core.market.recording import Recording
from scheduler.core.market.replay import Life
from scheduler.core.market.types import DeadlineJob, PlanOutlook

WINDOWS = 60
LOW, HIGH = 0.1, 0.9


def plan_outlook(
    job: DeadlineJob, name: str, decider: Decider, recording: Recording, windows: int = WINDOWS
) -> PlanOutlook:
    """Money, chance to end in time, and interruptions.

    The windows are spread evenly over the recording. Raises ValueError where the recording is shorter than
    the job's time.
    """
    starts = window_starts(len(recording), job.slots, windows)
    return outlook_of(name, [recording.live(job, decider, start) for start in starts])


def outlook_of(name: str, lives: Sequence[Life]) -> PlanOutlook:
    """The outlook from lives through windows."""
    money = np.array([one.cost for one in lives])
    low, median, high = np.quantile(money, [LOW, 0.5, HIGH])
    return PlanOutlook(
        decider=name,
        money=float(median),
        money_low=float(low),
        money_high=float(high),
        in_time=float(np.mean([one.in_time for one in lives])),
        interruptions=float(np.mean([one.interruptions for one in lives])),
        windows=len(lives),
    )


def window_starts(recorded: int, slots: int, windows: int) -> Sequence[int]:
    """First slots of at most so many windows, the last one ending with the recording."""
    if recorded < slots:
        raise ValueError(
            f"the market is recorded for {recorded} slots, and the job has {slots};"
            " choose an earlier deadline or wait until more is known of the market"
        )
    last = recorded - slots
    return sorted({round(place) for place in np.linspace(0, last, min(windows, last + 1))})
