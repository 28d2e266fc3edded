"""F3, F4, F11: what happens to trainings and node agents."""

from __future__ import annotations

import signal

import pytest

from tests.harness.stack import PATIENCE_S, Stack, until
from tests.stack.jobs import (
    caught_with_a_checkpoint,
    ended,
    final_loss,
    flip_a_byte,
    outcomes,
    settled_checkpoints,
    weights_at_the_portal,
)

pytestmark = pytest.mark.stack
SAME = 1e-4


def test_f4_a_killed_training_goes_on_from_its_checkpoint(judged: Stack, undisturbed_loss: float) -> None:
    job_id = caught_with_a_checkpoint(judged)
    judged.kill_trainings()
    job = ended(judged, job_id)
    assert outcomes(job) == ["killed", "succeeded"]
    assert job["attempts"][1]["resume_step"] > 0
    assert final_loss(job) == pytest.approx(undisturbed_loss, abs=SAME)


@pytest.mark.slow
@pytest.mark.parametrize("all_of_them", [False, True], ids=["the newest", "all"])
def test_f4_a_damaged_checkpoint_is_told_and_an_earlier_one_taken(
    judged: Stack, undisturbed_loss: float, all_of_them: bool
) -> None:
    job_id = caught_with_a_checkpoint(judged, checkpoints=2)
    for training in judged.trainings():
        training.suspend()
    held = settled_checkpoints(judged, job_id)
    damaged = held if all_of_them else held[:1]
    for checkpoint in damaged:
        flip_a_byte(weights_at_the_portal(judged, checkpoint))
    judged.kill_trainings()
    job = ended(judged, job_id)
    assert outcomes(job) == ["killed", *["checkpoint"] * len(damaged), "succeeded"]
    steps = [0, *(checkpoint.step for checkpoint in held), 0]
    assert [attempt["resume_step"] for attempt in job["attempts"]] == steps[: len(damaged) + 2]
    assert final_loss(job) == pytest.approx(undisturbed_loss, abs=SAME)
    judged.client.wait_for_node()  # it was not blocked


@pytest.mark.slow  # the chaos run kills agents, too
def test_f3_a_new_agent_adopts_a_training_that_outlived_the_old_one(
    judged: Stack, undisturbed_loss: float
) -> None:
    job_id = caught_with_a_checkpoint(judged)
    before = {training.pid for training in judged.trainings()}
    judged.kill("alpha")
    assert {training.pid for training in judged.trainings()} == before
    judged["alpha"].start()
    job = ended(judged, job_id)
    assert outcomes(job) == ["succeeded"]
    assert final_loss(job) == pytest.approx(undisturbed_loss, abs=SAME)


@pytest.mark.slow  # each of them is killed above
def test_f3_agent_and_training_killed_together_cost_one_attempt(
    judged: Stack, undisturbed_loss: float
) -> None:
    job_id = caught_with_a_checkpoint(judged)
    judged.kill("alpha")
    judged.kill_trainings()
    judged["alpha"].start()
    job = ended(judged, job_id)
    assert outcomes(job) == ["killed", "succeeded"]
    assert final_loss(job) == pytest.approx(undisturbed_loss, abs=SAME)


@pytest.mark.slow  # the chaos run cuts nodes off
def test_f11_a_node_that_was_silent_too_long_comes_back_with_a_stale_fence(
    judged: Stack, undisturbed_loss: float
) -> None:
    job_id = caught_with_a_checkpoint(judged)
    abandoned = judged.trainings()
    judged["alpha"].popen.send_signal(signal.SIGSTOP)
    judged.start_agent("beta")
    job = judged.client.wait(
        job_id,
        lambda job: len(job["attempts"]) == 2 and job["internal_state"] == "running",
        timeout_s=PATIENCE_S,
    )
    assert job["attempts"][1]["nodes"][0]["node"] == "beta"
    judged["alpha"].popen.send_signal(signal.SIGCONT)
    until(lambda: not any(training.is_running() for training in abandoned), what="the old training stops")
    job = ended(judged, job_id)
    assert outcomes(job) == ["lost", "succeeded"]
    assert final_loss(job) == pytest.approx(undisturbed_loss, abs=SAME)
    judged.supervisor.children.pop("beta").stop()


@pytest.mark.slow  # the chaos run cancels, too
def test_a_cancelled_training_stops_and_frees_its_gpu(judged: Stack) -> None:
    job_id = caught_with_a_checkpoint(judged)
    judged.client.post(f"jobs/{job_id}/cancel/")
    assert judged.client.wait(job_id, timeout_s=PATIENCE_S)["state"] == "cancelled"
    until(lambda: not judged.trainings(), what="the training stops")


@pytest.mark.slow  # trainings that take turns are stopped, too
def test_a_paused_training_resumes_where_it_was(judged: Stack, undisturbed_loss: float) -> None:
    job_id = caught_with_a_checkpoint(judged)
    judged.client.post(f"jobs/{job_id}/pause/")
    judged.client.wait(job_id, lambda job: job["state"] == "paused", timeout_s=PATIENCE_S)
    judged.client.post(f"jobs/{job_id}/resume/")
    job = ended(judged, job_id)
    assert outcomes(job) == ["stopped", "succeeded"]
    assert final_loss(job) == pytest.approx(undisturbed_loss, abs=SAME)
