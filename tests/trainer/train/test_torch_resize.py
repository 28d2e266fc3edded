"""A training that goes on with other numbers of processes learns what it would have learnt with one."""

from __future__ import annotations

import pytest

from tests.trainer.runs import PATIENCE_S, Run, StopAtLook
from trainer.checkpoint import newest

pytestmark = pytest.mark.torch


def test_one_process_then_two_then_one_learn_what_one_does(run: Run) -> None:
    """The same rows in the same steps, with the effective batch of 4."""
    run.params |= {"per_device_batch_size": 2, "gradient_accumulation_steps": 2, "max_steps": 60}
    run.write().train()

    def part(name: str, slots: int, steps: int, stop: StopAtLook | None, before: Run | None) -> Run:
        made = Run(run.path.with_name(name), run.models_dir, params={**run.params})
        made.checkpoint_every_s = 3600.0 if slots == 1 else 0.0
        made.slots, made.params["gradient_accumulation_steps"] = slots, 2 // slots
        found = newest(before.path / "checkpoints") if before else None
        made.write(resume=found.folder if found else None)
        if slots == 1:
            made.train(stop) if stop else made.train()
        else:
            process = made.start()
            made.await_event("checkpoint", 2)
            process.terminate()  # one signal, for both of them
            process.communicate(timeout=PATIENCE_S)
            assert (process.returncode, made.result["outcome"]) == (75, "stopped")
        assert len(made.losses) >= steps
        return made

    one = part("one", 1, 1, StopAtLook(4), None)
    two = part("two", 2, 1, None, one)
    three = part("three", 1, 1, None, two)
    assert {**one.losses, **two.losses, **three.losses} == pytest.approx(run.losses, rel=1e-4)
    assert 1 < max(two.losses) < 60
