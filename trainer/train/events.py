"""Reports of a training.

They are events.jsonl while it runs, result.json and metrics.csv at the end.
"""

from __future__ import annotations

import csv
import io
import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainer.protocol import ReportKind
from trainer.step_metrics import STEP_METRICS, Over

COLUMNS = ("step", *(metric.name for metric in STEP_METRICS))
SIGNS_OF_LIFE = (
    ReportKind.PREPARE,
    ReportKind.START,
    ReportKind.MEMORY,
)  # what the agent of every node must hear
_EVERY_STEP_UP_TO = 200
_SECONDS_BETWEEN_LINES = 0.5
_LINES_OF_A_LONG_RUN = 5000
_SECONDS_OF_SILENCE = 60.0
_WHOLE = {"step", *(metric.name for metric in STEP_METRICS if metric.whole)}


@dataclass(slots=True)
class RunFigures:
    """The figures of result.json.

    `tokens` (padding included) and `step` count from the job's beginning.
    tokens_per_s: the steady state of this attempt: all its steps but the first, without
    evaluating and saving.
    output_warnings: of a training that succeeded, what is wrong with its output.
    """

    step: int = 0
    total_steps: int = 0
    tokens: int = 0
    attempt_tokens: int = 0
    tokens_per_s: float | None = None
    startup_s: float | None = None
    train_s: float = 0.0
    evaluation_s: float = 0.0
    saving_s: float = 0.0
    peak_memory_bytes: int = 0
    memory_capacity_bytes: int | None = None
    first_loss: float | None = None
    final_loss: float | None = None
    eval_loss: float | None = None
    software: dict[str, str] = field(default_factory=dict)
    output: list[dict[str, Any]] = field(default_factory=list)
    output_warnings: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Journal:
    """events.jsonl and the rows of metrics.csv; silent without a path.

    tells: the whole story, as rank 0 does. Otherwise only `SIGNS_OF_LIFE`.
    """

    path: Path | None
    tells: bool = True
    rows: list[dict[str, Any]] = field(default_factory=list)
    _spoken_at: float = field(default_factory=time.monotonic)
    _steps: list[Mapping[str, float]] = field(default_factory=list)  # since the last line
    _tokens: int = 0
    _row_tokens: int = 0
    _seconds: float = 0.0

    def event(self, kind: ReportKind, **body: Any) -> None:
        """Append one line; it can be read when this returns."""
        if not self.tells and kind not in SIGNS_OF_LIFE:
            return
        self._spoken_at = time.monotonic()
        if self.path is not None:
            append_event(self.path, kind, body)

    def step(
        self, measured: RunFigures, values: Mapping[str, float], tokens: int, row_tokens: int, seconds: float
    ) -> None:
        """Count one step.

        A line is written for each step of a short run, twice a second in a long one.

        values: the step metrics by name, but for the rates of tokens. tokens: padding included. row_tokens:
        without it.
        """
        self._steps.append(values)
        self._tokens += tokens
        self._row_tokens += row_tokens
        self._seconds += seconds
        left = measured.total_steps - measured.step
        pause_s = max(_SECONDS_BETWEEN_LINES, measured.train_s / _LINES_OF_A_LONG_RUN)
        if left and measured.total_steps > _EVERY_STEP_UP_TO and self._seconds < pause_s:
            return
        step_s, tokens_per_s = self._seconds / len(self._steps), self._tokens / self._seconds
        rates = {"tokens_per_s": tokens_per_s, "row_tokens_per_s": self._row_tokens / self._seconds}
        row = {"step": measured.step, **_combined(self._steps), **rates}
        self.rows.append(row)
        self.say(
            f"step {measured.step}/{measured.total_steps}  loss {row['loss']:.4f}  "
            f"{tokens_per_s:.0f} tokens/s"
        )
        self._steps, self._tokens, self._row_tokens, self._seconds = [], 0, 0, 0.0
        self.event(
            ReportKind.STEP,
            **row,
            total_steps=measured.total_steps,
            tokens=measured.tokens,
            step_s=step_s,
            saving_s=measured.saving_s,
        )
        self.alive(measured.peak_memory_bytes)

    def evaluated(self, step: int, values: Mapping[str, float], seconds: float) -> None:
        """Report an evaluation. values: its metrics by name."""
        self.say(f"step {step}  validation loss {values['eval_loss']:.4f}")
        if self.rows and self.rows[-1]["step"] == step:
            self.rows[-1].update(values)
        else:
            self.rows.append({"step": step, **values})
        self.event(ReportKind.EVAL, step=step, evaluation_s=seconds, **values)

    def say(self, line: str) -> None:
        """One line for people, in the log."""
        if self.tells and self.path is not None:
            print(line, flush=True)

    def alive(self, memory: int) -> None:
        """Break a long silence, lest the agent take it for a hang.

        Silences are tokenising, evaluating, and all of the training on nodes without rank 0.
        """
        if time.monotonic() - self._spoken_at > _SECONDS_OF_SILENCE:
            self.event(ReportKind.MEMORY, memory_bytes=memory)


def _combined(steps: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Combine the metrics of several steps into those of one line.

    A value that is no number is left out.
    """
    combined = {}
    for metric in STEP_METRICS:
        known = [step[metric.name] for step in steps if metric.name in step]
        values = [value for value in known if math.isfinite(value)]
        if values:
            combined[metric.name] = sum(values) / len(values) if metric.over is Over.MEAN else values[-1]
    return combined


def append_event(path: Path, kind: ReportKind, body: dict[str, Any]) -> None:
    """One line of events.jsonl; `allow_nan` off, because NaN is not JSON."""
    with path.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps({"kind": kind, **body}, allow_nan=False) + "\n")


def metrics_csv(rows: Sequence[dict[str, Any]]) -> str:
    """Return the rows as CSV with the columns `COLUMNS`.

    A field that a row lacks stays empty; one that only another version measured is left out.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The inverse of `metrics_csv`."""
    with path.open(encoding="utf-8", newline="") as stream:
        return [
            {name: _number(name, value) for name, value in row.items() if value}
            for row in csv.DictReader(stream)
        ]


def _number(name: str, text: str) -> float | int:
    return int(text) if name in _WHOLE else float(text)
