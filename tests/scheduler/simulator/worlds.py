"""Small traces and clusters for tests of the simulator."""

from __future__ import annotations

from scheduler.core.types import Policy
from scheduler.simulator.baselines import SIMULATED
from scheduler.simulator.engine import Engine
from scheduler.simulator.inputs.cluster import Cluster, parse_cluster
from scheduler.simulator.inputs.trace import CapacityChange, TraceJob
from scheduler.simulator.settings import SimulationSettings
from scheduler.simulator.world.ground_truth import GroundTruth, RecordedTruth
from scheduler.simulator.world.interference import Colocation
from scheduler.simulator.world.predictions import Fidelity, PredictionModel
from scheduler.simulator.world.profiling import ProfilingRuns


def job(name: str, at: float = 0.0, *, gpus: float = 1, runs_s: float = 100.0, **rest: object) -> TraceJob:
    return TraceJob(job_id=name, submit_s=at, gpus=gpus, duration_s=runs_s, **rest)  # type: ignore[arg-type]


def play(
    jobs: list[TraceJob],
    cluster: str | Cluster = "gpu:1x4",
    policy: str | Policy = "fifo",
    *,
    level: Fidelity = Fidelity.ORACLE,
    truth: GroundTruth | None = None,
    capacity: tuple[CapacityChange, ...] = (),
    colocation: Colocation | None = None,
    error: float = 0.0,
    profile_s: float = 0.0,
    **settings: object,
) -> Engine:
    """A simulation that has run."""
    pools = parse_cluster(cluster) if isinstance(cluster, str) else cluster
    truth = truth or RecordedTruth()
    predictions = PredictionModel(level, truth, pools, error=error)
    engine = Engine(
        jobs,
        pools,
        SIMULATED[policy] if isinstance(policy, str) else policy,
        truth,
        predictions,
        SimulationSettings(**settings),  # type: ignore[arg-type]
        capacity,
        colocation,
        profiling=ProfilingRuns(profile_s, predictions.profile) if profile_s else None,
    )
    engine.run()
    return engine


def finishes(engine: Engine) -> dict[str, float | None]:
    return {name: run.finished for name, run in engine.runs.items()}
