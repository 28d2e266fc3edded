"""Do the changes offered to a waiting job bring the start that they promise?

    python -m benchmarks.scheduler.ahead.counterfactuals [--worlds 4] [--jobs 300] [--policies fifo ...]
        [--mixed]

Plays parts of public traces on 8 nodes of 8 GPUs by the simulator, as `start_times` does. At random moments
it takes some of the jobs that wait, finds the changes that help (`scheduler.core.changes`) as the worker of
the queue `predict` does, and then plays the part again, once for each change, with that change from the
moment on. It prints, for each kind of change and for all together,

- of how many changes the start lies inside the 80 % interval that was promised (aim 80 %),
- with how many the job starts later than without the change (aim at most 2 %),
- by how much it starts sooner in the median, as promised and really, and CPU seconds for one job.

A job may run on a quarter, half or twice the GPUs that it asked for, GPUs ** 0.85 times as fast. Predicted
durations are off by 25 % in the median, and what running jobs have left by 12 %. Intervals are as played.
Changes of one moment share their luck, and so do moments of one world. `--mixed`: a quarter of the nodes is
spot, teams have quotas, people limits, and some jobs come after others.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.scheduler.ahead.replays import SIZES, Kept, replayed, stretched
from benchmarks.scheduler.ahead.worlds import Part, World, opened
from scheduler.core.ahead.play_input import PlayInput
from scheduler.core.changes.helpful import HelpfulChange, helpful_changes
from scheduler.core.changes.possible import ChangeKind, OpenOptions, PossibleChange, possible_changes
from scheduler.core.changes.trying import try_changes
from scheduler.core.policies import POLICIES
from scheduler.core.types import JobInfo
from scheduler.services.forecasts.cpu_budget import CpuBudget

JOBS_OF_A_MOMENT = 2
LATER_S = 1.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--worlds", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=300, help="of a world")
    parser.add_argument("--moments", type=int, default=4, help="of a world")
    parser.add_argument("--cpu-s", type=float, default=4.0)
    parser.add_argument("--row-s", type=float, default=600.0, help="after which no world of it begins")
    parser.add_argument("--traces", nargs="+", default=["venus", "philly", "pai"])
    parser.add_argument("--load", type=float, default=0.9)
    parser.add_argument("--policies", nargs="+", default=["fifo", "easy", "sjf", "tiresias"])
    parser.add_argument("--mixed", action="store_true")
    given = parser.parse_args()
    print("| policy | trace | kind | worlds | changes | inside | later | sooner, promised | really | CPU s |")
    print("| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for policy in given.policies:
        for trace in given.traces:
            worlds = list(asked_of_worlds(policy, trace, given))
            for kind, row in rows(worlds):
                print(f"| `{policy}` | {trace} | {kind} | {row} |", flush=True)


@dataclass(slots=True)
class Asked:
    """The changes found for one job."""

    kept: list[Kept]
    cpu_s: float


def asked_of_worlds(policy: str, trace: str, given: argparse.Namespace) -> Iterator[list[Asked]]:
    until = time.process_time() + given.row_s
    for number in range(given.worlds):
        if time.process_time() > until:
            break
        part = Part(number, given.worlds)
        world = opened(trace, given.load, given.jobs, POLICIES[policy], part, mixed=given.mixed)
        yield list(looked_at(world, given.moments, given.cpu_s))


def looked_at(world: World, moments: int, cpu_s: float) -> Iterator[Asked]:
    for number, known in enumerate(list(world.play(moments))):
        rng = random.Random(number)
        waits = [job for job in known.waiting if (world.next_start(job.id, known.now) or 0) > known.now + 60]
        for job in rng.sample(waits, min(JOBS_OF_A_MOMENT, len(waits))):
            began = time.thread_time()
            found = changes_for(known, job, cpu_s)
            took_s = time.thread_time() - began
            kept = (replayed(world, known, job, possible, one) for possible, one in found)
            yield Asked([one for one in kept if one], took_s)


def changes_for(known: PlayInput, job: JobInfo, cpu_s: float) -> list[tuple[PossibleChange, HelpfulChange]]:
    anywhere = (*job.options, *(stretched(job.options[0], size) for size in SIZES))
    whole = tuple(option for option in anywhere if option.gpus >= 1)
    possible = possible_changes(known, job, OpenOptions(anywhere=whole, spot=job.options))
    trials = try_changes(known, job.id, possible, CpuBudget(cpu_s).share)
    by_name = {(one.kind, one.subject): one for one in possible}
    return [(by_name[one.kind, one.subject], one) for one in helpful_changes(trials, job.id, known.now)]


def rows(worlds: Sequence[list[Asked]]) -> Iterator[tuple[str, str]]:
    """A row for each kind of change, and one for all."""
    by_kind: dict[str, list[tuple[int, Kept]]] = defaultdict(list)
    for number, world in enumerate(worlds):
        for one in (one for each in world for one in each.kept):
            by_kind[one.change.kind.value].append((number, one))
    cpu_s = [each.cpu_s for world in worlds for each in world]
    for kind in [kind.value for kind in ChangeKind if kind.value in by_kind]:
        yield kind, summary(by_kind[kind])
    everything = [one for found in by_kind.values() for one in found]
    yield "all", summary(everything, sum(cpu_s) / len(cpu_s) if cpu_s else None)


def summary(found: Sequence[tuple[int, Kept]], cpu_s: float | None = None) -> str:
    if not found:
        return "0 | 0 | | | | |"
    kept = [one for _, one in found]
    inside = sum(is_inside(one) for one in kept)
    later = sum(one.start > one.without + LATER_S for one in kept)
    promised = [one.change.sooner_s for one in kept if one.change.sooner_s is not None]
    cells = [
        str(len({number for number, _ in found})),
        str(len(kept)),
        f"{inside / len(kept):.0%}",
        f"{later / len(kept):.1%}",
        f"{median(promised):,.0f} s" if promised else "-",
        f"{median(one.without - one.start for one in kept):,.0f} s",
        "" if cpu_s is None else f"{cpu_s:.1f}",
    ]
    return " | ".join(cells)


def is_inside(one: Kept) -> bool:
    promised = one.change.forecast.start
    if promised.low is None or promised.high is None:
        return False
    return promised.low - LATER_S <= one.now + one.start <= promised.high + LATER_S


if __name__ == "__main__":
    main()
