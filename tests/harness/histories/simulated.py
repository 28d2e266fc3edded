"""A live history, played by the simulator after the live loop."""

from __future__ import annotations

from typing import Any

from knowledge.core.domain.option_json import read_option
from knowledge.core.domain.types import Option
from scheduler.core.placement.fit import Shares
from scheduler.core.types import Action, GpuId, Preempt
from scheduler.models import Job
from scheduler.selectors.cluster.sites import sites_of
from scheduler.selectors.cluster.stop_costs import restart_s
from scheduler.selectors.policy import live_policy
from scheduler.selectors.quotas import limits_in_force
from scheduler.simulator.engine import Engine
from scheduler.simulator.inputs.cluster import Cluster, NodeGroup
from scheduler.simulator.inputs.trace import TraceJob
from scheduler.simulator.settings import SimulationSettings
from scheduler.simulator.world.ground_truth import GroundTruth, Throughput
from scheduler.simulator.world.runs import Run
from tests.harness.histories.live import NODES, Decision, LiveHistory
from tests.harness.histories.planned_jobs import PlannedJob


class AsPromised(GroundTruth):
    """A job takes as long as its option said."""

    def pace(self, job: TraceJob, option: Option, shares: Shares, done: float) -> Throughput | None:
        return Throughput(1 / option.duration_s.value)


class LiveOptions:
    """The predictions in the live jobs' options."""

    def __init__(self, jobs: list[Job]) -> None:
        self._by_job = {job.pk: tuple(map(read_option, job.options)) for job in jobs}

    def options(self, job: TraceJob, done: float = 0.0) -> tuple[Option, ...]:
        return self._by_job[job.job_id]

    def retry(self, job: TraceJob, left: tuple[Option, ...]) -> tuple[Option, ...]:
        return left

    def learn(self, job: TraceJob, option: Option, duration_s: float) -> None: ...


class NotingEngine(Engine):
    """Remembers what was decided when."""

    noted: list[tuple[float, str, tuple[GpuId, ...]]]

    def _start(
        self, run: Run, now: float, option: Option, gpus: tuple[GpuId, ...], host: Run | None = None
    ) -> None:
        super()._start(run, now, option, gpus, host)
        self.noted.append((now, run.job.job_id, gpus))

    def _apply(self, actions: Any, now: float) -> None:
        made: list[Action] = list(actions)
        self.noted += [(now, action.job, ()) for action in made if isinstance(action, Preempt)]
        super()._apply(made, now)


def simulate(live: LiveHistory) -> NotingEngine:
    """The same arrivals under the same policy in the simulator."""
    began = live.origin.timestamp()  # so that both round alike
    jobs = [trace_job(live, job, planned, began) for job, planned in zip(live.jobs, live.plan, strict=True)]
    settings = SimulationSettings(
        report_s=live.size.step_s, limits=limits_in_force({owner.pk for owner in live.owners}, live.origin)
    )
    nodes = [sites for _, sites in sorted(sites_of().items())]
    assert len(set(nodes)) == 1
    cluster = Cluster((NodeGroup("cpu", NODES, live.size.slots, sites=nodes[0]),))
    options = LiveOptions(live.jobs)
    engine = NotingEngine(jobs, cluster, live_policy().policy, AsPromised(), options, settings)
    engine.noted = []
    engine.run()
    return engine


def trace_job(live: LiveHistory, job: Job, planned: PlannedJob, began: float) -> TraceJob:
    return TraceJob(
        job_id=job.pk,
        submit_s=began + planned.at,
        gpus=1,
        user=str(live.owners[planned.owner].pk),
        group="" if planned.team is None else str(live.teams[planned.team].pk),
        priority=planned.priority,
        deadline_s=None if planned.due is None else began + planned.due,
        restart_s=restart_s(list(job.attempts.order_by("fence"))),
        begin_s=None if planned.begins is None else began + planned.begins,
        after="" if planned.after is None else live.jobs[planned.after].pk,
        array="array" if planned.in_array else "",
        array_limit=1 if planned.in_array else 0,
        topology=planned.topology,
        topology_level=planned.level.word if planned.level else "",
    )


def simulated_decisions(
    live: LiveHistory, engine: NotingEngine, began: float | None = None
) -> list[Decision]:
    """The simulator's decisions, as those of the live history.

    began: when that begins in the simulation; None: when it did.
    """
    began = live.origin.timestamp() if began is None else began
    numbers = {job.pk: number for number, job in enumerate(live.jobs)}
    places = {name: number for number, name in enumerate(engine.machines.by_id)}
    return sorted(
        (at - began, numbers[job], tuple(sorted((places[node], index) for node, index in gpus)))
        for at, job, gpus in engine.noted
    )
