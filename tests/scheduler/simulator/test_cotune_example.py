"""CoTune's worked example on one node of 8 GPUs.

It shows the value of knowing the options under FIFO.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from knowledge.core.domain.types import Goal, Interval, Option
from scheduler.core.placement.fit import Shares
from scheduler.simulator.baselines import SIMULATED
from scheduler.simulator.engine import Engine
from scheduler.simulator.inputs.cluster import parse_cluster
from scheduler.simulator.inputs.trace import TraceJob
from scheduler.simulator.settings import SimulationSettings
from scheduler.simulator.world.ground_truth import RecordedTruth, Throughput
from tests.scheduler.core.clusters import option
from tests.scheduler.simulator.worlds import finishes, job

WORK = {"a": 40e6, "b": 60e6, "c": 20e6}  # tokens
RATES = {  # tokens/s by GPUs
    "a": {1: 2600, 4: 9800},
    "b": {1: 1500, 2: 4400, 4: 9300},
    "c": {1: 5900, 2: 10700, 4: 20900},
}


class Rates(RecordedTruth):
    def pace(self, job: TraceJob, option: Option, shares: Shares, done: float) -> Throughput | None:
        return Throughput(RATES[job.job_id][option.gpus] / WORK[job.job_id])


@dataclass(frozen=True)
class Told:
    """Policies are told the options with these numbers of GPUs."""

    gpus: tuple[int, ...]

    def options(self, job: TraceJob, done: float = 0.0) -> tuple[Option, ...]:
        rates = {gpus: rate for gpus, rate in RATES[job.job_id].items() if gpus in self.gpus}
        made = [
            replace(option("gpu", gpus, duration_s=WORK[job.job_id] / rate), tokens_per_second=Interval(rate))
            for gpus, rate in rates.items()
        ]
        return tuple(sorted(made, key=lambda one: one.score(Goal.BALANCED)))

    def retry(self, job: TraceJob, left: tuple[Option, ...]) -> tuple[Option, ...]:
        return left

    def learn(self, job: TraceJob, option: Option, duration_s: float) -> None: ...


@pytest.mark.parametrize("policy", ["fifo", "fifo-distributed", "easy"])
@pytest.mark.parametrize(
    ("facts", "jcts", "mean"),
    [
        (Told((1,)), {"a": 15_385, "b": 40_000, "c": 3_390}, 19_591),
        (Told((1, 2, 4)), {"a": 4_082, "b": 6_452, "c": 5_039}, 5_191),
    ],
)
def test_the_worked_example(policy: str, facts: Told, jcts: dict[str, float], mean: float) -> None:
    jobs = [job(name, gpus=1, runs_s=None) for name in WORK]  # type: ignore[arg-type]
    engine = Engine(jobs, parse_cluster("gpu:1x8"), SIMULATED[policy], Rates(), facts, SimulationSettings())
    engine.run()
    found = {name: end or 0.0 for name, end in finishes(engine).items()}
    assert found == pytest.approx(jcts, abs=1)
    assert sum(found.values()) / 3 == pytest.approx(mean, abs=1)
