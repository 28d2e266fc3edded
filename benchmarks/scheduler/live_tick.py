"""Time and queries of one turn of the live loop.

python benchmarks/scheduler/live_tick.py [--jobs 1000] [--nodes 100] [--policy fifo] [--teams 0]
    [--ran-s 0] [--leave] [--repeats 15]
Bars on PostgreSQL, where a loop costs 500 ms: 200 ms a tick, 50 ms a start.

The time by the clock includes reads and writes of the database; CPU time is that of this process, without the
database's, and also told as a multiple of a loop of ten million additions, as other processes slow the clock
down. First all GPUs are given to jobs, which says what applying a start costs. Then every job waits with a
reason: first nothing changes; then one job is new in each tick. Each is measured with decisions being kept
(bar: a tenth slower) and without, in turns. With teams each has a quota, and jobs belong to them in turn.
Jobs that have run for some minutes (--ran-s) are stopped by `las` and `tiresias` for those that wait, so that
each tick hands GPUs over. No agent takes part: jobs that are stopped never leave, unless they do before the
next tick (--leave), which then starts the jobs for which they were stopped, too.

It needs the environment of the tests: `python3 run.py setup --dev`.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.scheduler.yardstick import loop_s

BATCH = 500  # rows a statement, which may take 30 s at most
LOOP_S = min(loop_s() for _ in range(3))


class Timed(NamedTuple):
    """Milliseconds by the clock, and of CPU time of this process."""

    clock_ms: float
    cpu_ms: float

    @classmethod
    def now(cls) -> Timed:
        return cls(1000 * time.perf_counter(), 1000 * time.process_time())

    @classmethod
    def since(cls, began: Timed) -> Timed:
        clock_ms, cpu_ms = cls.now()
        return cls(clock_ms - began.clock_ms, cpu_ms - began.cpu_ms)

    def __str__(self) -> str:
        return f"{self.clock_ms:.1f} ms, CPU {self.cpu_ms:.1f} ms = {self.cpu_ms / 1000 / LOOP_S:.2f} loops"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--policy", default="fifo")
    parser.add_argument("--teams", type=int, default=0)
    parser.add_argument("--ran-s", type=float, default=0.0)
    parser.add_argument("--leave", action="store_true")
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    from tests.harness.servers import Postgres

    server = Postgres()
    with tempfile.TemporaryDirectory() as data:
        os.environ.update(
            DATABASE_URL=server.url, DATA_DIR=data, SECRET_KEY="benchmark", POLICY=options.policy,
            LOG_LEVEL="ERROR", DJANGO_SETTINGS_MODULE="portal.settings",
        )  # fmt: skip
        try:
            measure(options)
        finally:
            server.remove()


def measure(options: argparse.Namespace) -> None:
    import django

    django.setup()
    from django.core.management import call_command

    from tests.harness import world

    call_command("migrate", verbosity=0)
    build(options.jobs, options.nodes)
    set_quotas(options.teams, options.nodes)
    world.age_starts(options.ran_s)
    for jobs in (options.jobs // 10, options.jobs):
        keep_waiting(jobs)
        for what, change in (("nothing changes", lambda: None), ("one job is new", one_is_new)):
            (kept, queries, started), (bare, *_) = ticks(change, options.repeats, leave=options.leave)
            print(
                f"{options.policy}: {jobs} queued jobs, {options.nodes} nodes, {what}: {kept} a tick,"
                f" {queries} queries, {started} starts; {bare} if no decision is kept",
                flush=True,
            )


def build(jobs: int, nodes: int) -> None:
    """Nodes of 8 GPUs, all held by one job, and a queue with three options each."""
    from portal.clock import database_now
    from scheduler.loop.tick import tick
    from scheduler.models import Gpu, Job, Node
    from tests.harness import world
    from tests.scheduler.core.clusters import option

    now = database_now()
    rows = [
        Node(name=f"n{n}", state="ready", state_since=now, token_hash=str(n), enrolled_at=now,
             last_seen_at=now + timedelta(hours=1))
        for n in range(nodes)
    ]  # fmt: skip
    Node.objects.bulk_create(rows)
    Gpu.objects.bulk_create(
        Gpu(node=row, index=index, model="A100", memory_bytes=1) for row in rows for index in range(8)
    )
    owner = world.user()
    file = world.data_file(owner)

    def job(gpus: tuple[int, ...], **values: Any) -> Job:
        ways = [option(gpus=count, duration_s=1000 / count).as_json() for count in gpus]
        return Job(owner=owner, model="m", training_file=file, version=1, state_since=now, submitted_at=now,
                   options=ways, **values)  # fmt: skip

    Job.objects.bulk_create((job((8,)) for _ in range(nodes)), batch_size=BATCH)
    began, started = Timed.now(), 0
    while more := tick().started:  # a tick starts so many at most
        started += more
    clock_ms, cpu_ms = Timed.since(began)
    print(f"a start, with its share of a tick: {Timed(clock_ms / started, cpu_ms / started)}", flush=True)
    assert Job.objects.filter(state="assigned").count() == nodes
    Job.objects.bulk_create((job((1, 2, 4)) for _ in range(jobs)), batch_size=BATCH)


def set_quotas(teams: int, nodes: int) -> None:
    """A quota for each team, of half of the GPUs together, and a limit of everybody."""
    from portal.accounts.models import Team
    from portal.clock import database_now
    from scheduler.models import Job
    from scheduler.services import quotas
    from tests.harness import world

    if not teams:
        return
    actor, now = world.admin(), database_now()
    made = [Team.objects.create(name=f"team {number}") for number in range(teams)]
    for team in made:
        values = quotas.QuotaValues(gpu_model="A100", guaranteed=nodes * 4 // teams, borrow_limit=nodes)
        quotas.set_quotas(team=team, quotas=[values], actor=actor, now=now)
    limit = quotas.LimitValues(running_jobs=10 * nodes, gpu_hours_month=1e6)
    quotas.set_limit(user=None, values=limit, actor=actor, now=now)
    jobs = list(Job.objects.order_by("id").only("id"))
    for number, job in enumerate(jobs):
        job.team = made[number % teams]
    Job.objects.bulk_update(jobs, ["team"], batch_size=BATCH)


def keep_waiting(jobs: int) -> None:
    """Leave this many jobs in the queue; park the rest."""
    from scheduler.models import Job

    Job.objects.filter(state="paused").update(state="queued")
    extra = Job.objects.filter(state="queued").order_by("-id")[jobs:]
    Job.objects.filter(pk__in=list(extra.values_list("pk", flat=True))).update(state="paused")


def one_is_new() -> None:
    """A job has not been told yet why it waits."""
    from scheduler.models import Job

    some = Job.objects.filter(state="queued").order_by("?").values("pk")[:1]
    Job.objects.filter(pk__in=some).update(wait_code="", wait_text="")


def stopped_jobs_leave() -> None:
    """The agents of jobs that are being stopped have saved their work."""
    from portal.clock import database_now
    from scheduler.models import Attempt
    from scheduler.services.jobs.attempts import end_attempt
    from scheduler.states import JobState, Outcome

    live = Attempt.objects.filter(ended_at__isnull=True, job__state=JobState.STOPPING)
    for attempt in live.select_related("job"):
        end_attempt(attempt=attempt, outcome=Outcome.STOPPED, reason="", now=database_now())


def ticks(change: Callable[[], None], repeats: int, *, leave: bool) -> list[tuple[Timed, int, int]]:
    """Median times, number of queries and starts of a tick after a change.

    First with decisions being kept, then without.
    """
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    from scheduler.loop import tick

    kept = tick.record  # type: ignore[attr-defined]
    modes = (kept, lambda *_: None)
    times: tuple[list[Timed], list[Timed]] = ([], [])
    queries, started = [0, 0], [0, 0]
    for number in range(repeats + 2):
        for mode, record in enumerate(modes):
            tick.record = record  # type: ignore[assignment,attr-defined]
            change()
            if leave:
                stopped_jobs_leave()
            if number == 0:  # writes the reasons once, and meets each option for the first time
                tick.tick()
            elif number == 1:
                with CaptureQueriesContext(connection) as found:
                    tick.tick()
                queries[mode] = len(found)
            else:
                began = Timed.now()
                report = tick.tick()
                times[mode].append(Timed.since(began))
                assert report.ran
                started[mode] += report.started
    tick.record = kept  # type: ignore[attr-defined]
    return [
        (Timed(*map(median, zip(*times[mode], strict=True))), queries[mode], round(started[mode] / repeats))
        for mode in (0, 1)
    ]


if __name__ == "__main__":
    main()
