"""Checkpoints, stops and going on: bit for bit what an uninterrupted training would have learnt."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.runs import ROWS, Run, StopAtLook
from trainer.checkpoint import MANIFEST, describe, digest, newest
from trainer.protocol import to_json

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


def other_step(run: Run, folder: Path) -> None:
    run.node["resume"] = {"step": 4, "stored": "portal", "claim": "earlier", "files": []}


def listed_anew(folder: Path) -> None:
    """The manifest of what lies there now: all digests are right."""
    files = [to_json(file) for file in describe(folder) if file.path != MANIFEST]
    (folder / MANIFEST).write_text(json.dumps({"step": 5, "files": files}))


def state(change: Callable[[dict[str, Any]], object]) -> Callable[[Run, Path], None]:
    def changed(run: Run, folder: Path) -> None:
        values = json.loads((folder / "state.json").read_text())
        change(values)
        (folder / "state.json").write_text(json.dumps(values))
        listed_anew(folder)

    return changed


def tensors(name: str, change: Callable[[dict[str, Any]], object]) -> Callable[[Run, Path], None]:
    def changed(run: Run, folder: Path) -> None:
        from safetensors.torch import load_file, save_file

        values = load_file(folder / f"{name}.safetensors")
        change(values)
        save_file(values, folder / f"{name}.safetensors")
        listed_anew(folder)

    return changed


def written(name: str, content: bytes | None) -> Callable[[Run, Path], None]:
    def changed(run: Run, folder: Path) -> None:
        (folder / name).unlink()
        if content is not None:
            (folder / name).write_bytes(content)
        listed_anew(folder)

    return changed


def first(change: Callable[[Any], Any]) -> Callable[[dict[str, Any]], object]:
    """Change the first tensor."""

    def changed(values: dict[str, Any]) -> None:
        name = sorted(values)[0]
        values[name] = change(values[name]).contiguous()

    return changed


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param(damage_weights, "step-5/weights.safetensors is missing or differs", id="digest"),
        pytest.param(change_rank, "lora_r differ", id="another training"),
        pytest.param(other_step, "is of step 5, not 4", id="another step"),
        pytest.param(state(lambda s: s["identity"].pop("lora_r")), "lora_r differ", id="a name is missing"),
        pytest.param(state(lambda s: s.pop("identity")), "cannot be loaded", id="no identity"),
        pytest.param(state(lambda s: s.update(identity=None)), "cannot be loaded", id="null identity"),
        pytest.param(state(lambda s: s["identity"].update(now="x")), "cannot be loaded", id="no moment"),
        pytest.param(state(lambda s: s["identity"].update(tokens="x")), "of other tokens", id="tokens"),
        pytest.param(state(lambda s: s.pop("updates")), "cannot be loaded", id="a state is missing"),
        pytest.param(state(lambda s: s.update(more=1)), "cannot be loaded", id="unknown state"),
        pytest.param(written("state.json", b"{"), "cannot be loaded", id="no JSON"),
        pytest.param(written("state.json", None), "cannot be loaded", id="no state"),
        pytest.param(written("weights.safetensors", b"x" * 99), "cannot be loaded", id="no tensors"),
        pytest.param(written("metrics.csv", None), "cannot be loaded", id="no metrics"),
        pytest.param(tensors("weights", lambda t: t.popitem()), "cannot be loaded", id="no weight"),
        pytest.param(tensors("weights", first(lambda t: t[:1, :1])), "the model has", id="weight's shape"),
        pytest.param(tensors("optimizer", first(lambda t: t[:1])), "the model has", id="moment's shape"),
        pytest.param(tensors("weights", first(lambda t: t.int())), "the model has", id="whole numbers"),
        pytest.param(tensors("weights", first(lambda t: t / 0)), "not finite", id="not finite"),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_told_as_the_checkpoints_fault(
    run: Run, change: Callable[[Run, Path], None], reason: str
):
    """The next attempt goes on from the one before; the job's owner did nothing wrong."""
    run.checkpoint_every_s = 0.0
    run.write().train()
    folder = run.path / "checkpoints" / "step-5"
    change(run, folder)
    result = run.write(resume=folder).train()
    assert (result["outcome"], result["exit_code"]) == ("checkpoint", 1)
    assert reason in result["reason"]


def test_memory_that_runs_out_over_a_checkpoint_is_not_the_checkpoints_fault():
    """Nor is a sick GPU, or a peer that is gone."""
    from trainer.train.checkpoint_state import blamed
    from trainer.train.errors import CheckpointFault
    from trainer.train.events import RunFigures
    from trainer.train.process import explain

    causes = {
        RuntimeError("CUDA out of memory"): "oom",
        RuntimeError("CUDA error: uncorrectable ECC error encountered"): "declined",
        RuntimeError("Connection reset by peer"): "lost",
        OSError(28, "No space left on device"): "declined",
        KeyError("a weight"): "checkpoint",
    }
    for cause, outcome in causes.items():
        with pytest.raises(CheckpointFault) as told, blamed():
            raise cause
        assert explain(told.value, RunFigures())[0] == outcome


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
