"""Reports of a training: events.jsonl while it runs, result.json and metrics.csv at the end."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainer.protocol import Kind

COLUMNS = ("step", "loss", "eval_loss", "learning_rate", "tokens_per_s", "memory_bytes")
SIGNS_OF_LIFE = (Kind.PREPARE, Kind.START, Kind.MEMORY)  # what the agent of every node must hear
_EVERY_STEP_UP_TO = 200
_SECONDS_BETWEEN_LINES = 0.5
_LINES_OF_A_LONG_RUN = 5000
_SECONDS_OF_SILENCE = 60.0


@dataclass(slots=True)
class RunFigures:
    """The figures of result.json. `tokens` (padding included) and `step` count from the job's beginning;
    tokens_per_s is the steady state of this attempt: all its steps but the first, without evaluating and
    saving."""

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


@dataclass(slots=True)
class Journal:
    """events.jsonl and the rows of metrics.csv; silent without a path.

    tells: the whole story, as rank 0 does. Otherwise only `SIGNS_OF_LIFE`.
    """

    path: Path | None
    tells: bool = True
    rows: list[dict[str, Any]] = field(default_factory=list)
    _spoken_at: float = field(default_factory=time.monotonic)
    _losses: list[float] = field(default_factory=list)
    _tokens: int = 0
    _seconds: float = 0.0

    def event(self, kind: Kind, **body: Any) -> None:
        """Append one line; it can be read when this returns."""
        if not self.tells and kind not in SIGNS_OF_LIFE:
            return
        self._spoken_at = time.monotonic()
        if self.path is not None:
            append_event(self.path, kind, body)

    def step(
        self, measured: RunFigures, loss: float, tokens: int, seconds: float, rate: float, memory: int
    ) -> None:
        """Count one step; write a line for each step of a short run, twice a second in a long one."""
        self._losses.append(loss)
        self._tokens += tokens
        self._seconds += seconds
        left = measured.total_steps - measured.step
        pause_s = max(_SECONDS_BETWEEN_LINES, measured.train_s / _LINES_OF_A_LONG_RUN)
        if left and measured.total_steps > _EVERY_STEP_UP_TO and self._seconds < pause_s:
            return
        step_s = self._seconds / len(self._losses)
        row = {
            "step": measured.step,
            "loss": sum(self._losses) / len(self._losses),
            "tokens_per_s": self._tokens / self._seconds,
            "memory_bytes": memory,
            "learning_rate": rate,
        }
        self.rows.append(row)
        self.say(
            f"step {measured.step}/{measured.total_steps}  loss {row['loss']:.4f}  "
            f"{row['tokens_per_s']:.0f} tokens/s"
        )
        self._losses, self._tokens, self._seconds = [], 0, 0.0
        self.event(
            Kind.STEP,
            **row,
            total_steps=measured.total_steps,
            tokens=measured.tokens,
            eta_s=left * step_s,
            step_s=step_s,
        )
        self.alive(memory)

    def evaluated(self, step: int, eval_loss: float) -> None:
        """Report an evaluation."""
        self.say(f"step {step}  validation loss {eval_loss:.4f}")
        if self.rows and self.rows[-1]["step"] == step:
            self.rows[-1]["eval_loss"] = eval_loss
        else:
            self.rows.append({"step": step, "eval_loss": eval_loss})
        self.event(Kind.EVAL, step=step, eval_loss=eval_loss)

    def say(self, line: str) -> None:
        """One line for people, in the log."""
        if self.tells and self.path is not None:
            print(line, flush=True)

    def alive(self, memory: int) -> None:
        """Break a long silence, lest the agent take it for a hang: tokenising, evaluating, and all of the
        training on nodes without rank 0."""
        if time.monotonic() - self._spoken_at > _SECONDS_OF_SILENCE:
            self.event(Kind.MEMORY, memory_bytes=memory)


def append_event(path: Path, kind: Kind, body: dict[str, Any]) -> None:
    """One line of events.jsonl; `allow_nan` off, because NaN is not JSON."""
    with path.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps({"kind": kind, **body}, allow_nan=False) + "\n")


def metrics_csv(rows: Sequence[dict[str, Any]]) -> str:
    """The rows with the columns `COLUMNS`; what a row lacks stays empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
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
    return int(text) if name in ("step", "memory_bytes") else float(text)
