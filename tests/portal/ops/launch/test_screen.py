from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console

from portal.ops.launch import terminal


def job(**more: Any) -> dict[str, Any]:
    names = ("name", "value", "low", "high", "actual", "inside")
    lines = (
        ("duration_s", 60.0, 40.0, 90.0, 100.0, False),
        ("tokens_per_second", 6000.0, 5000.0, 9000.0, 7000.0, True),
        ("peak_memory_bytes", 500 * 2**20, None, None, 600 * 2**20, None),
    )
    comparison = [dict(zip(names, line, strict=True)) for line in lines]
    progress = {"step": 0, "total_steps": 50, "loss": None, "tokens_per_second": None, "eta_s": None}
    progress["silent_since"] = None
    fields = {"model": "builtin/tiny-llama", "training_file": "file-1", "params": {}, "wait": None}
    return {**fields, "state": "running", "internal_state": "running", "stage": "", "comparison": comparison,
            "currency": "EUR",
            "progress": progress, **more}  # fmt: skip


def shown(thing: Any, width: int = 100) -> str:
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        console.print(thing)
    return captured.get()


def test_a_waiting_job_says_why() -> None:
    waiting = job(state="queued", wait={"code": "gpus", "text": "needs 8 GPUs; 5 are left"})
    assert "needs 8 GPUs; 5 are left" in shown(terminal.progress_line(waiting))


def test_progress_names_step_loss_rate_and_time_left() -> None:
    progress = {"step": 7, "total_steps": 50, "loss": 1.5, "tokens_per_second": 6543.2, "eta_s": 12.0}
    progress["silent_since"] = None
    line = shown(terminal.progress_line(job(progress=progress)))
    assert all(part in line for part in ("step 7/50", "loss 1.500", "6,543 tokens/s", "12 s left"))


@pytest.mark.parametrize("width", [80, 130])
def test_the_configuration_gives_every_value_its_author_and_reason(width: int) -> None:
    chosen = {"value": 0.002, "by": "recommended", "reason": "Large steps."}
    unset = {"value": None, "by": "default", "reason": "Not used."}
    params = {"gradient_accumulation_steps": chosen, "max_steps": unset}
    text = shown(terminal.configuration(job(params=params)), width)
    assert all(
        part in text for part in ("gradient_accumulation_steps", "0.002", "recommended", "Large steps.")
    )
    assert "max_steps" not in text


def test_the_comparison_says_what_was_inside_and_what_was_never_predicted() -> None:
    duration, throughput, memory = shown(terminal.comparison(job())).splitlines()[4:7]
    assert duration.split()[-1] == "no"
    assert "100 s" in duration
    assert throughput.split()[-1] == "yes"
    assert "not predicted" in memory
    assert "600 MiB" in memory


def test_a_cost_is_told_in_the_portals_currency() -> None:
    line = {"name": "cost", "value": 12.5, "low": 10.0, "high": 0.25, "actual": 1069.4, "inside": False}
    reported = shown(terminal.comparison(job(comparison=[line])))
    assert all(part in reported for part in ("12.5 EUR", "10 to 0.25", "1,069 EUR"))
