"""Checkpoints, stops and going on: bit for bit what an uninterrupted training would have learnt."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.runs import ROWS, Run, StopAtLook
from trainer.checkpoint import digest, newest

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("precision", ["float32", "float16"])
def test_a_stopped_training_resumes_with_the_same_losses(run: Run, precision: str):
    run.params.update(precision=precision, epochs=3.0, max_steps=None)
    run.write(validation=ROWS[:2]).train()
    whole = Run(run.path.with_name("stopped"), run.models_dir, params=run.params)
    stopped = whole.write(validation=ROWS[:2]).train(StopAtLook(5))
    assert (stopped["outcome"], stopped["exit_code"]) == ("stopped", 75)
    assert whole.events("checkpoint")[-1]["step"] == stopped["step"] < 9
    found = newest(whole.path / "checkpoints")
    resumed = Run(run.path.with_name("resumed"), run.models_dir, params=run.params)
    resumed.write(validation=ROWS[:2], resume=found.folder if found else None).train()
    assert {**whole.losses, **resumed.losses} == run.losses
    for name in ("final_loss", "first_loss", "eval_loss", "step", "tokens"):
        assert resumed.result[name] == run.result[name]
    assert resumed.result["attempt_tokens"] < resumed.result["tokens"]
    metrics = [Path(one.path / "output" / "metrics.csv").read_text().splitlines() for one in (run, resumed)]
    assert len(metrics[0]) == len(metrics[1])


@pytest.mark.parametrize("look", [4, 6], ids=["before it", "within it"])
def test_a_stop_at_the_end_of_an_epoch_is_obeyed_at_once_and_its_evaluation_made_up_for(run: Run, look: int):
    """Looks: before the first step, after each of three, then before each of the evaluation's parts."""
    run.params.update(epochs=2.0, max_steps=None)
    stopped = run.write(validation=ROWS).train(StopAtLook(look))
    assert (stopped["outcome"], stopped["step"]) == ("stopped", 3)
    assert run.events("eval") == []
    found = newest(run.path / "checkpoints")
    again = Run(run.path.with_name("again"), run.models_dir, params=run.params)
    again.write(validation=ROWS, resume=found.folder if found else None).train()
    assert [event["step"] for event in again.events("eval")] == [3, 6]


def test_a_stop_within_a_long_step_gives_it_up_and_keeps_those_before(
    run: Run, monkeypatch: pytest.MonkeyPatch
):
    """Looks: before the first step, twice within each and once after it."""
    monkeypatch.setattr("trainer.train.loop.LOOK_EVERY_S", 0.0)
    run.params.update(per_device_batch_size=2, gradient_accumulation_steps=3)
    run.write().train()
    stopped = Run(run.path.with_name("stopped"), run.models_dir, params=run.params)
    result = stopped.write().train(StopAtLook(6))
    assert (result["outcome"], result["step"]) == ("stopped", 1)
    again = Run(run.path.with_name("again"), run.models_dir, params=run.params)
    again.write(resume=stopped.path / "checkpoints" / "step-1").train()
    assert {**stopped.losses, **again.losses} == run.losses


def test_a_stop_before_the_first_step_ends_at_once_without_a_checkpoint(run: Run):
    result = run.write().train(StopAtLook(1))
    assert (result["outcome"], result["step"]) == ("stopped", 0)
    assert newest(run.path / "checkpoints") is None


def test_checkpoints_come_by_time_and_only_two_stay(run: Run):
    run.checkpoint_every_s = 0.0
    run.write().train()
    assert [event["step"] for event in run.events("checkpoint")] == [1, 2, 3, 4, 5]
    assert sorted(path.name for path in (run.path / "checkpoints").iterdir()) == ["step-4", "step-5"]
    last = run.events("checkpoint")[-1]
    for file in last["files"]:
        assert digest(run.path / last["dir"] / file["path"]) == file["sha256"]


def damage_weights(run: Run, folder: Path) -> None:
    (folder / "weights.safetensors").write_bytes(b"x")


def change_rank(run: Run, folder: Path) -> None:
    run.params["lora_r"] = 8


@pytest.mark.parametrize(
    ("change", "reason"),
    [(damage_weights, "step-5/weights.safetensors is missing or differs"), (change_rank, "lora_r differ")],
)
def test_a_checkpoint_that_does_not_fit_is_refused(run: Run, change: Any, reason: str):
    run.checkpoint_every_s = 0.0
    run.write().train()
    folder = run.path / "checkpoints" / "step-5"
    change(run, folder)
    assert reason in run.write(resume=folder).train()["reason"]


@pytest.fixture
def full_from_step(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """From this step on no checkpoint fits on the disk."""
    from trainer.train.checkpoint_state import Snapshot

    original = Snapshot.write

    def fill(step: int) -> None:
        def write(snapshot: Snapshot, folder: Path) -> None:
            if snapshot.step >= step:
                raise OSError(28, "No space left on device")
            original(snapshot, folder)

        monkeypatch.setattr(Snapshot, "write", write)

    return fill


def test_a_checkpoint_that_the_disk_has_no_room_for_is_left_out_and_the_training_goes_on(
    run: Run, full_from_step: Callable[[int], None], capsys: pytest.CaptureFixture[str]
):
    full_from_step(3)
    run.checkpoint_every_s = 0.0
    assert run.write().train()["outcome"] == "succeeded"
    assert [event["step"] for event in run.events("checkpoint")] == [1, 2]
    assert "the checkpoint of step 3 is left out: the disk is full" in capsys.readouterr().out


def test_a_full_disk_at_a_stop_is_named_and_leaves_the_last_checkpoint(
    run: Run, full_from_step: Callable[[int], None]
):
    full_from_step(3)
    run.checkpoint_every_s = 0.0
    result = run.write().train(StopAtLook(5))
    assert (result["outcome"], result["step"]) == ("lost", 4)
    assert "disk is full" in result["reason"]
    found = newest(run.path / "checkpoints")
    assert found is not None
    assert found.step == 2
