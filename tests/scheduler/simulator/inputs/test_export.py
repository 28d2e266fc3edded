"""The portal's own past becomes a trace that the simulator plays."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.core.placement.levels import TopologyLevel
from scheduler.models import Job, JobArray, JobDependency
from scheduler.selectors.trace import past_jobs, trace_jobs
from scheduler.simulator.inputs.importers.registry import load_trace
from tests.harness import world
from tests.harness.fake_node import FakeNode
from tests.scheduler.analysis.past import ended_job

pytestmark = pytest.mark.django_db


def test_ended_jobs_are_written_and_can_be_played(node: FakeNode, tmp_path: Path) -> None:
    job = ended_job(node, ran_s=90)
    world.job()  # has not run: no part of the past
    call_command("export_trace", str(tmp_path / "past.csv"))
    header = (tmp_path / "past.csv").read_text().partition("\n")[0].split(",")
    assert "method" in header
    assert "tuning" not in header
    [found] = load_trace(tmp_path / "past.csv").jobs
    assert found.tuning == job.attempts.get().promised.config.tuning
    assert (found.job_id, found.submit_s, found.duration_s) == (job.pk, 0.0, 90.0)
    assert (found.gpus, found.model, found.status) == (1, job.model, "succeeded")
    assert found.user == f"user-{job.owner_id}"
    assert job.owner.username not in (tmp_path / "past.csv").read_text()
    assert found.pred_duration_s == pytest.approx(job.promise["duration_s"]["value"])
    out = tmp_path / "out.json"
    arguments = ["--trace", str(tmp_path / "past.csv"), "--cluster", f"{found.gpu_type}:1x2"]
    call_command("simulate", *arguments, "--policy", "fifo", "--json", str(out))
    assert '"jct_mean_s": 90.0' in out.read_text()


def test_what_was_asked_of_a_job_is_played(node: FakeNode, tmp_path: Path) -> None:
    job, plain = ended_job(node, ran_s=90), ended_job(node, ran_s=90)
    asked = {"goal": "fastest", "priority": 1, "preemptible": False, "max_run_s": 600}
    close = {"topology": "guaranteed", "topology_level": TopologyLevel.NUMA}
    times = {"begin_at": job.submitted_at, "deadline_at": job.submitted_at + timedelta(hours=1)}
    Job.objects.filter(pk=job.pk).update(**asked, **close, **times)
    call_command("export_trace", str(tmp_path / "past.csv"))
    by_id = {found.job_id: found for found in load_trace(tmp_path / "past.csv").jobs}
    found, other = by_id[job.pk], by_id[plain.pk]
    assert {name: getattr(found, name) for name in asked} == asked
    assert (found.topology, found.topology_level) == ("guaranteed", "numa")
    assert found.deadline_s == pytest.approx(found.submit_s + 3600)
    assert found.begin_s == pytest.approx(found.submit_s)
    assert (other.topology, other.topology_level, other.begin_s, other.deadline_s) == ("", "", None, None)


def test_an_attempt_on_more_gpus_counts_for_more(node: FakeNode) -> None:
    job = ended_job(node, ran_s=90)
    last = job.attempts.get()
    wide = {**last.option, "config": {**last.option["config"], "number_gpus": 4}}
    job.attempts.create(
        fence=0, option=wide, created_at=last.created_at, running_at=last.running_at, ended_at=last.ended_at,
        outcome="lost",
    )  # fmt: skip
    [found] = trace_jobs(past_jobs())
    assert (found.gpus, found.duration_s) == (1, 90.0 + 4 * 90.0)


def test_the_past_is_read_in_few_queries_however_long_it_is(node: FakeNode) -> None:
    for _ in range(3):
        ended_job(node, ran_s=5)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        assert len(list(trace_jobs(past_jobs()))) == 3
    assert len(queries) == 3


def test_what_jobs_waited_for_is_part_of_the_past(node: FakeNode) -> None:
    first = ended_job(node, ran_s=5)
    later = ended_job(node, ran_s=5)
    JobDependency.objects.create(job=later, on=first, kind="succeeded")
    array = JobArray.objects.create(owner=later.owner, limit=2, submitted_at=later.submitted_at)
    Job.objects.filter(pk=later.pk).update(
        array=array, begin_at=first.submitted_at + timedelta(hours=1), priority=1, preemptible=False
    )
    found = list(trace_jobs(past_jobs()))[1]
    assert (found.after, found.after_ended, found.begin_s) == (first.pk, "", 3600.0)
    assert (found.array, found.array_limit, found.priority, found.preemptible) == (array.pk, 2, 1, False)


def test_a_time_without_its_zone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="--since must be a date and time with its zone"):
        call_command("export_trace", str(tmp_path / "x.csv"), "--since", "2026-01-31")
