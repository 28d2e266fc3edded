"""The life of a claim under an executor with a queue of its own, no process ids and random delays.

A real agent speaks to the real portal; the executor is the toy of the checklist.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.conf import settings
from django.db.models import F
from django.db.models.signals import post_save
from pytest_django.live_server_helper import LiveServer

from knowledge.models import Execution
from portal.clock import database_now
from portal.nodes import views
from scheduler.loop.tick import tick
from scheduler.models import Allocation, Attempt, Claim, Job, Node
from scheduler.selectors.public_states import shown_state
from scheduler.services.jobs.verbs import cancel_job
from scheduler.services.nodes.register import create_join_token
from scheduler.services.sync.artifacts import store_artifact
from scheduler.states import JobState, NodeState
from tests.extending.checkout import ROOT
from tests.harness import world
from tests.trainer.agent.fakes.fake_portal import until

StartAgent = Callable[[], "subprocess.Popen[bytes]"]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """The agent's. What still runs in it afterwards, engine and trainings, is ended."""
    folder = tmp_path / "node"
    yield folder
    for process in psutil.process_iter():
        try:
            if str(folder) in " ".join(process.cmdline()):
                process.kill()
        except psutil.Error:
            continue


@pytest.fixture
def start_agent(live_server: LiveServer, folder: Path) -> Iterator[StartAgent]:
    token = create_join_token(actor=world.admin(), now=database_now())
    started: list[subprocess.Popen[bytes]] = []

    def start() -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tests.extending.queue_agent", live_server.url, str(folder), token]
        started.append(subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}))
        return started[-1]

    yield start
    for agent in started:
        agent.kill()
        agent.wait()


@pytest.fixture
def queued(start_agent: StartAgent, folder: Path) -> tuple[Job, subprocess.Popen[bytes]]:
    """A job whose claim waits in the queue of the engine, which begins nothing for now, and the agent."""
    (folder / "engine").mkdir(parents=True)
    (folder / "engine" / "hold").touch()
    agent = start_agent()
    until(lambda: Node.objects.filter(state=NodeState.READY).exists())
    job = world.job()
    until(lambda: tick().started or Attempt.objects.exists())
    until(lambda: Claim.objects.get().engine_reason == "Resources")
    return job, agent


@pytest.fixture
def phases(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The phases of the claim as the portal took them.

    Its output is kept once one of them was `delivering`, so that none is passed over.
    """
    seen: list[str] = []
    delivers = threading.Event()

    def note(instance: Claim, **_: Any) -> None:
        if instance.phase not in seen[-1:]:
            seen.append(instance.phase)
        if instance.phase == "delivering":
            delivers.set()

    def store_late(**given: Any) -> Any:
        if not given["path"].startswith("checkpoints/"):
            delivers.wait(60)
        return store_artifact(**given)

    monkeypatch.setattr(views, "store_artifact", store_late)
    post_save.connect(note, sender=Claim)
    yield seen
    post_save.disconnect(note, sender=Claim)


def run_of(folder: Path) -> Path:
    return folder / "runs" / str(Claim.objects.get().pk)


def test_a_claim_lives_through_a_wait_much_longer_than_any_start_and_a_restart_of_its_agent(
    phases: list[str], queued: tuple[Job, subprocess.Popen[bytes]], start_agent: StartAgent, folder: Path
) -> None:
    job, agent = queued
    agent.kill()
    agent.wait()
    much_s = 100 * settings.STARTING_TIMEOUT_S
    Attempt.objects.update(created_at=F("created_at") - timedelta(seconds=much_s))
    Claim.objects.update(queued_at=F("queued_at") - timedelta(seconds=much_s))
    world.age_state(job, much_s)
    start_agent()
    heard_at = database_now()
    until(lambda: Node.objects.filter(last_seen_at__gt=heard_at).exists())
    tick()
    job.refresh_from_db()
    assert (job.state, shown_state(job), phases) == (JobState.ASSIGNED, "queued", ["assigned", "queued"])
    (folder / "engine" / "hold").unlink()
    until(lambda: world.state_of(job) == JobState.STARTING)
    tick()
    assert world.state_of(job) == JobState.STARTING
    (run_of(folder) / "go").touch()
    until(lambda: world.state_of(job) == JobState.SUCCEEDED)
    assert phases == ["assigned", "queued", "starting", "running", "delivering", "ended"]
    attempt = job.attempts.get()
    assert attempt.queued_s is not None
    assert attempt.queued_s > 0.9 * much_s
    learnt = Execution.objects.get(attempt_id=attempt.pk)
    assert learnt.startup_s is not None
    assert learnt.startup_s < settings.STARTING_TIMEOUT_S


def test_a_claim_that_is_cancelled_in_the_queue_never_begins(
    queued: tuple[Job, subprocess.Popen[bytes]], folder: Path
) -> None:
    job, _ = queued
    cancel_job(job=job, actor=job.owner, now=database_now())
    until(lambda: world.state_of(job) == JobState.CANCELLED)
    said = json.loads((folder / "engine" / str(Claim.objects.get().pk) / "said.json").read_text())
    assert (said["phase"], said["words"]) == ("over", "withdrawn")
    assert job.attempts.get().outcome == "stopped"
    assert not Allocation.objects.filter(released_at__isnull=True).exists()
    assert not Execution.objects.filter(attempt_id__isnull=False).exists()
    until(lambda: not run_of(folder).exists())
