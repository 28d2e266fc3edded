"""Time from the decision to stop a running training to the start of the next one.

python benchmarks/scheduler/rules/turns.py [--turns 6]

A portal as it is shipped (web server, workers, beat, broker, SQLite) and a node agent with one CPU slot run
real trainings under `tiresias`, whose first queue ends after some seconds here: each new job stops the one
that runs. Seconds by the clock, from rows: from the decision to the victim's confirmed stop, its checkpoint
uploaded; to the start, by which the GPUs are the other job's; and to its first reported step.

It needs the environment of the tests: `python3 run.py setup --dev`.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

# The first queue ends within seconds; a job that was stopped stops nobody in turn.
SOON = {"limits_gpu_s": [4.0, 1e6], "promotion": 0, "min_run_s": 1.0, "cooldown_s": 10_000.0}
LONG = {"max_steps": 20_000, "per_device_batch_size": 2, "effective_batch_size": 2}
WITHIN_S = 180.0
TRAINS_S = 6.0  # more than the first queue lasts


class Turn(NamedTuple):
    """Seconds after the decision."""

    stopped: float
    started: float
    running: float


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--turns", type=int, default=6)
    args = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    import django

    django.setup()
    from django.conf import settings

    logging.getLogger("httpx").setLevel(logging.WARNING)

    from tests.harness.stack import Stack

    stack = Stack(leases={})
    try:
        stack.start()
        stack.start_agent("alpha")
        turns = played(stack, args.turns)
    finally:
        stack.stop()
    allowed_s = settings.STOP_GRACE_S + 5
    print(f"{len(turns)} turns on one CPU slot; a stop may take {settings.STOP_GRACE_S:g} s (STOP_GRACE_S)")
    for name in Turn._fields:
        seconds = sorted(getattr(turn, name) for turn in turns)
        print(f"decision to {name:8} median {median(seconds):5.1f} s, most {seconds[-1]:5.1f} s")
    late = sum(turn.started > allowed_s for turn in turns)
    print(f"started later than the grace and 5 s: {late} of {len(turns)}")


def played(stack, turns: int) -> list[Turn]:  # type: ignore[no-untyped-def]
    """Submit one job after the other, each once the one before has trained for some seconds."""
    from scheduler.models import Attempt, Preemption
    from tests.harness.stack import until

    stack.admin.post("policy/", {"name": "tiresias", "reason": "turns", "parameters": SOON})
    found: list[Turn] = []
    before = None
    for _ in range(turns + 1):
        job = stack.submit(**LONG)
        began = Attempt.objects.using(stack.alias).filter(job=job, running_at__isnull=False)
        until(began.exists, timeout_s=WITHIN_S, what=f"job {job} runs")
        if before:
            stop = Preemption.objects.using(stack.alias).get(job=before)
            victim = Attempt.objects.using(stack.alias).get(job=before, fence=stop.fence)
            taker = began.get()
            moments = (victim.ended_at, taker.created_at, taker.running_at)
            found.append(Turn(*((moment - stop.at).total_seconds() for moment in moments if moment)))
        time.sleep(TRAINS_S)
        before = job
    return found


if __name__ == "__main__":
    main()
