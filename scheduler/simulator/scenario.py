"""A trace on a cluster under a policy: from files to figures in a few calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from scheduler.core.limits import Window
from scheduler.core.types import Policy
from scheduler.rare_collections import rare_collections
from scheduler.simulator.baselines import SIMULATED
from scheduler.simulator.engine import Engine
from scheduler.simulator.errors import ClusterError, SimulatorError, TraceError
from scheduler.simulator.inputs import files
from scheduler.simulator.inputs.cluster import (
    Bundle,
    Cluster,
    checked,
    read_cluster,
    requested,
    why_impossible,
)
from scheduler.simulator.inputs.importers.registry import load_trace
from scheduler.simulator.inputs.market import SimulatedMarket
from scheduler.simulator.inputs.profiles import Application, read_applications
from scheduler.simulator.inputs.trace import Refusal, Trace, TraceJob, offered_gpus
from scheduler.simulator.metrics import Metrics, measure
from scheduler.simulator.packing import Packing, Pairs, StatedPairs, read_pairs
from scheduler.simulator.settings import SimulationSettings
from scheduler.simulator.world.goodput import GoodputTruth
from scheduler.simulator.world.ground_truth import (
    GroundTruth,
    RecordedTruth,
    gavel_rates,
    table_rates,
)
from scheduler.simulator.world.interference import Colocation
from scheduler.simulator.world.nodes import Machines
from scheduler.simulator.world.past_options import PastOptions, PastTruth
from scheduler.simulator.world.predictions import Fidelity, PredictionModel, blank_of
from scheduler.simulator.world.profiling import ProfilingRuns

_PROFILES = ("profiles/placements.csv.gz", "sia/profiles/placements.csv.gz")
_GAVEL = ("simulation_throughputs.json.gz", "simulation_throughputs.json")


@dataclass(slots=True)
class Scenario:
    """A trace that fits a cluster, and the facts about its jobs.

    Jobs that fit nowhere are refused.
    """

    trace: Trace
    cluster: Cluster
    applications: dict[str, Application] = field(default_factory=dict)
    rates: GroundTruth | None = None
    pairs: Pairs | None = None  # measured; None: as stated
    past: dict[str, PastOptions] = field(default_factory=dict)  # of jobs of a portal's own past
    counted: frozenset[str] | None = None  # the jobs of which figures tell; None: all
    impossible: list[Refusal] = field(default_factory=list)
    _alone_s: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raises TraceError if no job fits."""
        truth, jobs = self.truth(Fidelity.DEFAULT), []
        for row, job in enumerate(self.trace.jobs, start=1):
            bundles = requested(job, self.cluster) or self._bundles_of_past(job)
            if not bundles:
                self.impossible.append(Refusal(row, job.job_id, why_impossible(job, self.cluster)))
            elif alone_s := _alone_s(job, truth, bundles):
                self._alone_s[job.job_id] = alone_s
                jobs.append(_due(job, alone_s))
            else:
                self.impossible.append(Refusal(row, job.job_id, "its profile was not measured on these GPUs"))
        if not jobs:
            raise TraceError(f"no job fits the cluster; the first {self.impossible[0].reason}")
        self.trace = replace(self.trace, jobs=tuple(jobs))

    def _bundles_of_past(self, job: TraceJob) -> tuple[Bundle, ...]:
        known = self.past.get(job.job_id)
        return known.bundles(self.cluster) if known else ()

    @property
    def refused(self) -> list[Refusal]:
        """Errors of the importer and the cluster."""
        return [*self.trace.refused, *self.impossible]

    @property
    def load(self) -> float:
        """Offered load: GPU time asked for over GPU time there is while jobs arrive."""
        pairs = [(job, self.alone_s(job)) for job in self.trace.jobs]
        return offered_gpus(pairs, self.trace.span_s) / self.cluster.total_gpus

    def alone_s(self, job: TraceJob) -> float:
        """The true duration of a job as submitted, start-up apart, on the quickest pool."""
        return self._alone_s[job.job_id]

    def truth(self, level: Fidelity) -> GroundTruth:
        """Return the ground truth of the jobs.

        Measured applications tune their batch where knowledge may choose.
        """
        if self.applications:
            return GoodputTruth(self.applications, tuned=level.chooses)
        return self.rates or (PastTruth(self.past) if self.past else RecordedTruth())

    @rare_collections(lives_on=True)
    def simulate(
        self,
        policy: Policy,
        level: Fidelity,
        settings: SimulationSettings | None = None,
        *,
        error: float = 0.0,
        seed: int = 0,
        colocation: Colocation | None = None,
        packing: bool = False,
        market: SimulatedMarket | None = None,
        profile_s: float = 0.0,
        progress: Callable[[int], None] | None = None,
    ) -> tuple[Engine, Metrics]:
        """Play the trace to its end.

        error: MdAPE of predictions (Predictions).
        packing: in Lucid's pairs. market: the one whose on-demand nodes are a pool of the cluster.
        profile_s: how long a job of which nothing is known first runs to be measured.
        """
        truth = self.truth(level)
        predictions = PredictionModel(level, truth, self.cluster, error=error, seed=seed, past=self.past)
        pairs = Packing(self.pairs or StatedPairs(seed)) if packing else None
        jobs, capacity = self.trace.jobs, self.trace.capacity
        settings = settings or SimulationSettings()
        if self.trace.closures:
            settings = replace(settings, windows=(*settings.windows, *self._windows()))
        engine = Engine(
            jobs, self.cluster, policy, truth, predictions, settings, capacity, colocation, pairs, market,
            ProfilingRuns(profile_s, predictions.profile) if profile_s else None,
        )  # fmt: skip
        engine.run(progress)
        runs = [run for run in engine.runs.values() if self.counted is None or run.job.job_id in self.counted]
        return engine, measure(engine, runs, [self._alone_s[run.job.job_id] for run in runs])

    def _windows(self) -> list[Window]:
        machines = Machines(self.cluster)
        return [
            Window(
                closes_at=closed.from_s,
                ends_at=closed.until_s,
                nodes=frozenset(machines.named(closed.where)),
                team=closed.group,
            )
            for closed in self.trace.closures
        ]


def _due(job: TraceJob, alone_s: float) -> TraceJob:
    """The job with a deadline by its `slo`, if it has no other."""
    if job.slo is None or job.deadline_s is not None:
        return job
    return replace(job, deadline_s=job.submit_s + job.slo * alone_s)


def _alone_s(job: TraceJob, truth: GroundTruth, bundles: Iterable[Bundle]) -> float | None:
    quickest = None
    for option, shares in map(blank_of, bundles):
        alone_s = truth.left_s(job, option, shares)
        if alone_s and (quickest is None or alone_s < quickest):
            quickest = alone_s
    return quickest


@rare_collections(lives_on=True)
def open_scenario(
    path: Path,
    cluster: Cluster | None = None,
    group: str | None = None,
    market: SimulatedMarket | None = None,
) -> Scenario:
    """Read a trace and the measurements that belong to it.

    cluster: None takes the folder's `cluster.csv`.
    group: None takes all jobs. market: its on-demand nodes are a pool more, or all there is.
    Raises TraceError and ClusterError.
    """
    trace = load_trace(path, group)
    cluster = cluster or _own_cluster(path, needed=market is None)
    if market:
        cluster = checked([*cluster.pools, market.on_demand], "--on-demand")
    scenario = _measured(trace, path, cluster)
    side = path / "pairs.csv"
    scenario.pairs = read_pairs(files.read_rows(side)) if path.is_dir() and side.exists() else None
    return scenario


def _own_cluster(path: Path, *, needed: bool) -> Cluster:
    side = path / "cluster.csv"
    if not path.is_dir() or not side.exists():
        if not needed:
            return Cluster(())
        raise ClusterError("--cluster: is needed, unless the trace is a folder with a cluster.csv")
    return read_cluster(files.read_rows(side))


def _measured(trace: Trace, path: Path, cluster: Cluster) -> Scenario:
    if trace.meta["source"] == "sia":
        return Scenario(trace, cluster, applications=_applications(path))
    if any(job.profile and job.duration_s is None for job in trace.jobs):
        return Scenario(trace, cluster, rates=_rates(path))
    return Scenario(trace, cluster)


def policy_named(name: str) -> Policy:
    """A policy of the table. Raises SimulatorError with the names there are."""
    if name not in SIMULATED:
        raise SimulatorError(f"--policy: {name!r} is no policy; there are {', '.join(sorted(SIMULATED))}")
    return SIMULATED[name]


def _rates(path: Path) -> GroundTruth:
    own = (path if path.is_dir() else path.parent) / "profiles.csv"
    if own.exists():
        return table_rates(files.read_rows(own))
    found = files.find_beside(path, *_GAVEL)
    if found is None:
        raise TraceError(f"{path}: its jobs have profiles; neither profiles.csv nor {_GAVEL[0]} is beside it")
    return gavel_rates(files.read_json(found))


def _applications(path: Path) -> dict[str, Application]:
    found = files.find_beside(path, *_PROFILES)
    if found is None:
        raise TraceError(
            f"{path}: its jobs need the folder profiles/ of Sia's measurements beside or above it"
        )
    folder = found.parent
    return read_applications(
        *(files.read_rows(folder / f"{name}.csv.gz") for name in ("validation", "placements", "scalability"))
    )
