"""An added policy is at every interface, in the simulator and in the docs.

It was added by its checklist.
"""

from __future__ import annotations

import pytest
from django.test import Client

from scheduler.core.policies import POLICIES
from scheduler.loop.tick import tick
from scheduler.models import Job
from scheduler.selectors.policy import current_policy
from scheduler.states import JobState
from tests.generated_docs import SCHEDULING, with_policies
from tests.harness import world
from tests.scheduler.simulator.worlds import finishes, job, play

SUMMARY = "Last come, first served."


@pytest.fixture
def admin(db: None) -> Client:
    client = Client()
    client.force_login(world.admin())
    return client


@pytest.mark.parametrize("path", ["/policy/", "/simulations/", "/admin/scheduler/policychoice/add/"])
def test_people_choose_it_by_its_summary(admin: Client, path: str) -> None:
    assert SUMMARY in admin.get(path).content.decode()


def test_programs_choose_it_and_it_runs_the_cluster(admin: Client) -> None:
    assert admin.get("/api/policy/").json()["summaries"]["newest"] == SUMMARY
    choice = {"name": "newest", "reason": "to try it"}
    assert admin.patch("/api/policy/", choice, content_type="application/json").status_code == 200
    assert current_policy() == "newest"
    world.fake_node(slots=1)
    older, newer = world.job(), world.job()
    tick()
    assert Job.objects.get(pk=older.pk).state == JobState.QUEUED
    assert Job.objects.get(pk=newer.pk).state == JobState.ASSIGNED


def test_the_simulator_plays_it_quickly() -> None:
    assert POLICIES["newest"].incremental  # type: ignore[attr-defined]
    done = finishes(play([job(f"j{n}", at=n, runs_s=10) for n in range(3)], "gpu:1x1", "newest"))
    assert done == {"j0": 10, "j2": 20, "j1": 30}


def test_its_row_can_be_written_into_docs() -> None:
    page = with_policies(SCHEDULING.read_text())
    assert "| `newest` | latest submission | options | no | | classic |" in page
