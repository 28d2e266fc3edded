"""The log of a simulated training process, made from its reports: no chance in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from portal.ops.demo.outcomes import REASONS
from scheduler.models import Attempt
from trainer.protocol import Outcome, Phase, ReportKind

SIMULATED = "simulated: no process wrote this log"


def journal(
    attempt: Attempt, phase: Phase, said: Sequence[tuple[ReportKind, dict[str, Any]]], outcome: Outcome | None
) -> str:
    """Return the log lines that go with these reports, in the trainer's own words.

    The text is empty where the trainer would be silent.
    """
    lines = [SIMULATED, _opening(attempt)] if phase is Phase.STARTING else []
    lines += [line for kind, body in said if (line := _line(kind, body))]
    if outcome is not None:
        lines.append(REASONS[outcome] or "simulated: the adapter is saved")
    return "".join(f"{line}\n" for line in lines)


def _opening(attempt: Attempt) -> str:
    return f"{attempt.job.model} on {attempt.promised.gpus} × {attempt.promised.gpu_model}"


def _line(kind: ReportKind, body: dict[str, Any]) -> str:
    match kind:
        case ReportKind.START:
            return f"{body['steps_total']:,} steps, begun after {body['startup_s']:.0f} s"
        case ReportKind.STEP:
            at = f"step {body['step']}/{body['total_steps']}"
            return f"{at}  loss {body['loss']:.4f}  {body['tokens_per_s']:.0f} tokens/s"
        case _:
            return ""
