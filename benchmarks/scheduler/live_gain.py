"""Mean job completion times of the live loop beside the simulator's, of the same arrivals.

python benchmarks/scheduler/live_gain.py [--jobs 20] [--seed 1] [--step 4] [--policies fifo easy tiresias sia]
    (bar: within 3 %)

The live loop is the real one, on PostgreSQL, with its clock replaced; fake nodes hold each job for as long as
its option promises, and see ends every `--step` seconds. Each policy begins with an empty portal. Then the
portal simulates its own past, as `/simulations/` does: real over simulated mean and p95 (bar: within 5 %).

It needs the environment of the tests: `python3 run.py setup --dev`.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime, timedelta
from multiprocessing import get_context
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
ROUND: dict[str, Any] = {"round_s": 60, "min_run_s": 60}
CHOICES: dict[str, dict[str, Any]] = {
    "tiresias": {**ROUND, "cooldown_s": 60, "limits_gpu_s": [60, 300]},
    "sia": ROUND,
}
ARRIVAL_S = 24  # mean seconds between jobs


class Compared(NamedTuple):
    """Mean completion times in s, and the stops for others in the live loop.

    own_past: as the portal simulates it (scheduler.services.simulations.reproduction).
    """

    live_s: float
    simulated_s: float
    stops: int
    own_past: dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--step", type=int, default=4)
    parser.add_argument("--policies", nargs="+", default=["fifo", "easy", "tiresias", "sia"])
    options = parser.parse_args()
    print("| policy | live, mean s | simulator, mean s | ratio | stops, live | own past: mean, p95 |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for policy in options.policies:
        with ProcessPoolExecutor(1, get_context("spawn")) as process:
            found = process.submit(compare, policy, options.jobs, options.seed, options.step).result()
        ratio = found.live_s / found.simulated_s
        row = f"| {policy} | {found.live_s:.0f} | {found.simulated_s:.0f} | {ratio:.3f} | {found.stops} |"
        print(f"{row} {reproduced(found.own_past)} |", flush=True)


def reproduced(figures: dict[str, Any]) -> str:
    """Real over simulated, of each figure."""
    return ", ".join(f"{real / figures['simulated'][name]:.3f}" for name, real in figures["real"].items())


def compare(policy: str, jobs: int, seed: int, step_s: int) -> Compared:
    """Both means, in a portal of its own."""
    from tests.harness.servers import Postgres

    server = Postgres()
    with tempfile.TemporaryDirectory() as data:
        Path(data, "static").mkdir()  # WhiteNoise warns without
        os.environ.update(
            DATABASE_URL=server.url, DATA_DIR=data, SECRET_KEY="benchmark", MAX_NODES_PER_JOB="2",
            ALLOWED_HOSTS="testserver", LOG_LEVEL="ERROR", DJANGO_SETTINGS_MODULE="portal.settings",
        )  # fmt: skip
        try:
            return play(policy, jobs, seed, step_s)
        finally:
            server.remove()


def play(policy: str, jobs: int, seed: int, step_s: int) -> Compared:
    import django

    django.setup()
    import pytest
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    from portal.clock import database_now
    from scheduler.models import Attempt
    from scheduler.services.policy import choose_policy
    from tests.harness import world
    from tests.harness.histories.live import LiveHistory, Size
    from tests.harness.histories.simulated import simulate

    before = database_now() - timedelta(days=1)
    parameters = CHOICES.get(policy, {})
    choose_policy(name=policy, parameters=parameters, actor=world.admin(), reason="benchmark", now=before)
    size = Size(jobs=jobs, arrivals_s=ARRIVAL_S * jobs, step_s=step_s, steps=10**5)
    with pytest.MonkeyPatch.context() as clock:
        live = LiveHistory(seed, clock, size)
        live.play()
    took = []
    for job in live.jobs:
        ended = job.attempts.latest("fence").ended_at
        assert ended is not None
        took.append((ended - job.submitted_at).total_seconds())
    runs = simulate(live).runs.values()
    simulated = [run.finished - run.job.submit_s for run in runs if run.finished is not None]
    assert len(simulated) == len(took) == jobs
    stops = Attempt.objects.filter(outcome="stopped").count()
    return Compared(mean(took), mean(simulated), stops, own_past(policy, live.origin + timedelta(days=1)))


def own_past(policy: str, now: datetime) -> dict[str, Any]:
    """How well the portal reproduces what it did."""
    from portal.clock import database_now
    from scheduler.services.simulations.play import play_next
    from scheduler.services.simulations.request import SimulationRequest, request_simulation
    from tests.harness import world

    question = SimulationRequest(policies=[policy], knowledge="performance")
    made = request_simulation(question=question, actor=world.admin(), now=now)
    play_next(now=database_now)
    made.refresh_from_db()
    assert made.reproduction is not None
    assert not made.reproduction["trouble"], made.reproduction
    return dict(made.reproduction)


if __name__ == "__main__":
    main()
