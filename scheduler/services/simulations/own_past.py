"""The portal's own past, as it is played.

It has the jobs of a range, and the nodes and rules of that time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from django.conf import settings

from scheduler.core.policies import LIVE
from scheduler.core.policies.parameters import with_parameters
from scheduler.core.types import Policy
from scheduler.models import Job, Simulation
from scheduler.selectors.cluster.stop_costs import restart_s
from scheduler.selectors.past.acts import past_acts
from scheduler.selectors.past.edges import edge_jobs, from_its_start
from scheduler.selectors.past.nodes import PastNodes, past_nodes
from scheduler.selectors.past.options import past_options
from scheduler.selectors.past.rules import past_limits, past_policies, past_windows
from scheduler.selectors.policy import live_policy
from scheduler.selectors.trace import attempts_that_ran, past_jobs, trace_jobs
from scheduler.simulator.errors import SimulatorError
from scheduler.simulator.inputs.cluster import parse_cluster
from scheduler.simulator.inputs.trace import Refusal, Trace, TraceJob
from scheduler.simulator.scenario import Scenario, policy_named
from scheduler.simulator.settings import RuleChange, SimulationSettings
from scheduler.simulator.world.past_options import PastOptions
from scheduler.states import JobState

TICK_S = 5.0  # how often a policy is asked that decides in every tick
TICKS = 20_000  # of a simulation, at most
ROUNDS = 3_000  # of a policy that decides in rounds: a long range has longer ones


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnPast:
    """The jobs of a range, and the nodes and rules of that time.

    Times are in s from the first submission.

    jobs: with those that ran when the range began. counted: those of the range itself.
    took_s: of each job that succeeded, from its submission to its end.
    policies: that decided, each with the time of its choice.
    """

    length_s: float
    jobs: tuple[TraceJob, ...]
    counted: frozenset[str]
    refused: tuple[Refusal, ...]
    options: dict[str, PastOptions]
    took_s: dict[str, float]
    nodes: PastNodes
    rules: SimulationSettings
    policies: list[tuple[float, Policy]]

    def scenario(self, described: str = "") -> Scenario:
        """The jobs on a described cluster, or on the nodes as they came, failed and went."""
        trace = Trace(jobs=self.jobs, refused=self.refused, meta={"source": "own past"})
        if described:
            return Scenario(trace, parse_cluster(described), past=self.options, counted=self.counted)
        trace = replace(trace, capacity=self.nodes.capacity)
        return Scenario(trace, self.nodes.cluster, past=self.options, counted=self.counted)

    def settings(self, policy: Policy, described: str = "") -> SimulationSettings:
        """The rules under which another policy would have decided.

        Windows are of nodes of that time.
        """
        windows = () if described else self.rules.windows
        return replace(
            self.rules, windows=windows, tick_s=self._tick_s([policy]), round_s=self._round_s([policy])
        )

    def as_it_was(self) -> tuple[Policy, SimulationSettings]:
        """The first policy, and the rules with each policy that took over."""
        (_, first), *later = self.policies
        changes = (*self.rules.changes, *(RuleChange(at=at, policy=policy) for at, policy in later))
        ordered = tuple(sorted(changes, key=lambda change: change.at))
        every = [policy for _, policy in self.policies]
        return first, replace(
            self.rules, changes=ordered, tick_s=self._tick_s(every), round_s=self._round_s(every)
        )

    def _round_s(self, policies: list[Policy]) -> float | None:
        """The length of rounds where the policies' own would be too many; None: their own."""
        shortest_s, rounds = self.length_s / ROUNDS, [policy.round_s for policy in policies]
        return shortest_s if all(one and one < shortest_s for one in rounds) else None

    def _tick_s(self, policies: list[Policy]) -> float:
        """How often policies are asked that may stop jobs at any time.

        Live ticks ask them as often.
        """
        if any(policy.preempts and not policy.round_s for policy in policies):
            return max(TICK_S, self.length_s / TICKS)
        return 0.0


def own_past(simulation: Simulation) -> OwnPast:
    """The jobs of its range that had ended by then, and those that ran when it began.

    Raises SimulatorError if there is none.
    """
    asked_at = simulation.requested_at
    rows = list(past_jobs(simulation.since, simulation.until, ended_by=asked_at))
    first = next((row.submitted_at for row in rows if attempts_that_ran(row)), asked_at)
    edges = edge_jobs(first, asked_at)
    # Times count from the first job of all, which may be one that was refused.
    begin = min([first, *(row.submitted_at for row in edges)])
    by_id = {row.pk: row for row in (*edges, *rows)}
    jobs: list[TraceJob] = []
    refused: list[Refusal] = []
    options: dict[str, PastOptions] = {}
    for number, job in enumerate(trace_jobs(by_id.values(), begin), start=1):
        problem, row = job.problem(), by_id[job.job_id]
        if problem:
            refused.append(Refusal(number, job.job_id, problem))
        else:
            known = _with_options(job, row, options)
            jobs.append(from_its_start(known, attempts_that_ran(row), begin, first))
    counted = frozenset(row.pk for row in rows) & {job.job_id for job in jobs}
    if not counted:
        raise SimulatorError("None of the jobs of this range can be played.")
    played = [by_id[job.job_id] for job in jobs]
    end = max(row.ended_at or asked_at for row in played)
    nodes = past_nodes(begin, end)
    limits, changes = past_limits(begin, end, {row.owner_id for row in played})
    return OwnPast(
        length_s=(end - begin).total_seconds(), jobs=tuple(jobs), refused=tuple(refused), options=options,
        counted=counted,
        took_s={
            row.pk: _took_s(row) for row in rows if row.pk in counted and row.state == JobState.SUCCEEDED
        },
        nodes=nodes, policies=past_policies(begin, end),
        rules=SimulationSettings(
            limits=limits, changes=tuple(changes), windows=past_windows(begin, end, nodes.names),
            acts=past_acts({row.pk for row in played}, begin, end),
            checkpoint_s=settings.CHECKPOINT_EVERY_S, saves_first=True,
        ),
    )  # fmt: skip


def _with_options(job: TraceJob, row: Job, options: dict[str, PastOptions]) -> TraceJob:
    """The job with what it really took, start-up included.

    Its options are added to `options`.
    """
    ran = attempts_that_ran(row)
    known = past_options(row, ran)
    if known is None:
        return job
    options[job.job_id] = known
    duration_s = known.slower * ran[-1].promised.duration_s.value
    return replace(job, duration_s=duration_s, restart_s=restart_s(ran))


def _took_s(row: Job) -> float:
    return (row.ended_at - row.submitted_at).total_seconds() if row.ended_at else 0.0


def as_it_would_run(name: str) -> Policy:
    """The policy as the portal would run it.

    It has the parameters in force, or its defaults here. Raises SimulatorError.
    """
    policy, live = policy_named(name), live_policy()
    if name == live.policy.name:
        return live.policy
    return with_parameters(policy, {}) if name in LIVE else policy
