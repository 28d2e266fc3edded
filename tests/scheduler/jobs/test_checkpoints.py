"""Checkpoints that are gone or damaged when a job is to go on from them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from portal.clock import database_now
from scheduler.loop.sweeps import sweep
from scheduler.loop.tick import tick
from scheduler.models import Checkpoint, Job, Node
from scheduler.services.files.storage import artifact_path
from scheduler.services.files.uploads import path_of
from scheduler.states import JobState, NodeState
from tests.harness import world
from tests.harness.fake_node import FakeNode, checkpoint
from trainer.protocol import ClaimOrder

pytestmark = pytest.mark.django_db
BIG = [{"path": "weights.bin", "sha256": "0" * 64, "bytes": 10**11}]


def resumed_at(node: FakeNode) -> tuple[ClaimOrder, int]:
    assert tick().started == 1
    order = node.take_up()
    assert order.spec is not None
    return order, order.spec.resume.step if order.spec.resume else 0


def test_a_job_goes_on_from_what_is_left_when_a_node_has_deleted_its_checkpoints(node: FakeNode) -> None:
    """A job goes on from an older checkpoint once its node has deleted newer ones.

    This happens after a pause of days. Otherwise each new start would be declined until the job
    fails.
    """
    job = world.placed_job(node)
    first = node.take_up()
    node.save_checkpoint(first, 10)
    node.run(first, checkpoint(20, BIG, stored="node"), checkpoint(30, BIG, stored="node"))
    node.end(first, "killed")
    order, step = resumed_at(node)
    assert step == 30
    node.end(order, "checkpoint", checkpoint(30, [], stored="gone"), reason="it is not on this node any more")
    assert [kept.step for kept in Checkpoint.objects.filter(job=job, fault="")] == [10]
    assert resumed_at(node)[1] == 10


DAMAGED = "the portal has lost resume/weights.bin: it arrived with other contents"


def test_a_damaged_checkpoint_is_set_aside_and_the_one_before_is_next(node: FakeNode) -> None:
    """Nobody's retries are used but the infrastructure's, and no node is blamed."""
    job = world.placed_job(node)
    first = node.take_up()
    for saved in (10, 20, 30):
        node.save_checkpoint(first, saved)
    node.end(first, "killed")
    for expected in (30, 20):
        order, step = resumed_at(node)
        assert step == expected
        node.end(order, "checkpoint", reason=DAMAGED)
    order, step = resumed_at(node)
    assert step == 10
    node.end(order, "succeeded")
    job.refresh_from_db()
    assert (job.state, job.errors_used, job.infrastructure_used) == (JobState.SUCCEEDED, 0, 3)
    assert [event.reason for event in job.events.filter(type="job.checkpoint_lost")] == [
        f"The checkpoint at step {lost} is not used again: {DAMAGED}" for lost in (30, 20)
    ]
    of_node = Node.objects.get()
    assert (of_node.state, of_node.declines) == (NodeState.READY, [])
    assert not of_node.events.filter(type="node.declined").exists()


def test_a_job_whose_checkpoints_are_all_damaged_begins_anew(node: FakeNode) -> None:
    world.placed_job(node)
    first = node.take_up()
    for saved in (10, 20):
        node.save_checkpoint(first, saved)
    node.end(first, "killed")
    steps = []
    for _ in range(2):
        order, step = resumed_at(node)
        steps.append(step)
        node.end(order, "checkpoint", reason=DAMAGED)
    assert [*steps, resumed_at(node)[1]] == [20, 10, 0]


@pytest.mark.slow
def test_three_jobs_with_damaged_checkpoints_block_no_node_and_hold_up_nobody() -> None:
    nodes = []
    for _ in range(3):
        nodes.append(world.fake_node(slots=1))
        world.placed_job(nodes[-1])
    for node in nodes:
        order = node.take_up()
        node.save_checkpoint(order, 10)
        node.save_checkpoint(order, 20)
        node.end(order, "killed")
    for lost in (20, 10):
        assert tick().started == 3
        for node in nodes:
            order = node.take_up()
            assert order.spec is not None
            assert order.spec.resume is not None
            assert order.spec.resume.step == lost
            node.end(order, "checkpoint", reason=DAMAGED)
    healthy = world.job()
    assert tick().started == 3
    node = nodes[0]
    node.end(node.take_up(), "succeeded")
    tick()
    healthy.refresh_from_db()
    assert healthy.state == JobState.ASSIGNED
    assert set(Node.objects.values_list("state", flat=True)) == {NodeState.READY}


def test_a_job_that_can_never_go_on_fails_as_the_systems(node: FakeNode) -> None:
    """Also where a node says so of an attempt that goes on from nothing."""
    job = world.placed_job(node)
    node.end(node.take_up(), "checkpoint", reason="so it says")
    for _ in range(5):
        node.end(resumed_at(node)[0], "data", reason="the portal has lost train.jsonl: 410")
    job.refresh_from_db()
    assert (job.state, job.failure_class) == (JobState.FAILED, "system")
    assert "the portal has lost train.jsonl" in job.failure_reason
    assert not job.events.filter(type="job.checkpoint_lost").exists()
    assert Node.objects.get().state == NodeState.READY


def test_a_checkpoint_that_the_portal_has_no_more_is_told_as_lost(node: FakeNode) -> None:
    job = world.placed_job(node)
    first = node.take_up()
    node.save_checkpoint(first, 10)
    node.end(first, "killed")
    order, _ = resumed_at(node)
    assert node.fetch(order, "resume/weights.bin").status_code == 200
    artifact_path(job.pk, first.claim, "checkpoints/step-10/weights.bin").unlink()
    answer = node.fetch(order, "resume/weights.bin")
    assert (answer.status_code, answer.json()["error"]["code"]) == (410, "content_lost")
    path_of(job.training_file.sha256).unlink()
    assert node.fetch(order, "train.jsonl").status_code == 410
    assert node.fetch(order, "other.jsonl").status_code == 404


def test_a_node_speaks_of_its_own_checkpoints_only(node: FakeNode) -> None:
    job = world.placed_job(node)
    order = node.take_up()
    node.save_checkpoint(order, 10)
    node.run(order, checkpoint(10, [], stored="gone"))
    assert Checkpoint.objects.filter(job=job).exists()


def kept_at_the_portal(job: Job) -> list[int]:
    """The steps whose files lie there, by rows and on the disk alike."""
    rows = {part.checkpoint_step for part in job.artifacts.all()} - {None}
    folder = Path(settings.DATA_DIR) / "artifacts" / job.pk
    on_disk = {int(path.parent.name.removeprefix("step-")) for path in folder.rglob("weights.bin")}
    assert rows == on_disk
    return sorted(on_disk)


def test_two_checkpoints_of_a_live_job_are_kept_and_none_after_its_success(
    node: FakeNode, django_capture_on_commit_callbacks: Any
) -> None:
    job = world.placed_job(node)
    order = node.take_up()
    for saved in (10, 20, 30, 40):
        with django_capture_on_commit_callbacks(execute=True):
            node.save_checkpoint(order, saved)
    assert kept_at_the_portal(job) == [30, 40]
    node.upload(order, "checkpoints/step-50/weights.bin", b"on its way")
    sweep(database_now())
    assert kept_at_the_portal(job) == [30, 40, 50]
    node.end(order, "killed")
    order, step = resumed_at(node)
    sweep(database_now())
    assert (step, kept_at_the_portal(job)) == (40, [30, 40])
    assert node.fetch(order, "resume/weights.bin").status_code == 200
    node.upload(order, "output/adapter.bin", b"learnt")
    node.end(order, "succeeded")
    sweep(database_now())
    assert kept_at_the_portal(job) == []
    assert [artifact.path for artifact in job.artifacts.all()] == ["output/adapter.bin"]


def test_a_damaged_checkpoint_takes_nobodys_place(node: FakeNode) -> None:
    job = world.placed_job(node)
    first = node.take_up()
    for saved in (10, 20, 30):
        node.save_checkpoint(first, saved)
    node.end(first, "killed")
    node.end(resumed_at(node)[0], "checkpoint", reason=DAMAGED)
    sweep(database_now())
    assert kept_at_the_portal(job) == [10, 20]
    assert resumed_at(node)[1] == 20


def test_the_furthest_checkpoint_of_a_failed_job_is_kept_for_some_days(node: FakeNode) -> None:
    job = world.placed_job(node)
    order = node.take_up()
    for saved in (10, 20):
        node.save_checkpoint(order, saved)
    node.end(order, "error", reason="line 7 has no completion")
    sweep(database_now())
    assert kept_at_the_portal(job) == [20]
    sweep(database_now() + timedelta(days=settings.CHECKPOINT_KEEP_DAYS + 1))
    assert kept_at_the_portal(job) == []


def test_files_that_a_killed_process_had_removed_already_are_no_trouble(node: FakeNode) -> None:
    job = world.placed_job(node)
    order = node.take_up()
    for saved in (10, 20, 30):
        node.save_checkpoint(order, saved)
    artifact_path(job.pk, order.claim, "checkpoints/step-10/weights.bin").unlink()
    sweep(database_now())
    assert kept_at_the_portal(job) == [20, 30]
