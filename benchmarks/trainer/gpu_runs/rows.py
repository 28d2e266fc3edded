"""Measurements of a training, as a row of docs/knowledge.md's CSV with some columns more.

An import leaves the columns of `MORE` out: bytes and steps behind the figures, how the training was started,
and why it ended.
"""

from __future__ import annotations

import csv
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from benchmarks.trainer.gpu_runs.plan import Planned
from knowledge.core.data.sources.generic import COLUMNS
from knowledge.core.domain import config_space

SOURCE = "foretune-trainer"
STATUS = {"succeeded": "ok", "oom": "oom"}
MORE = ("process", "steps", "train_s", "peak_memory_bytes", "memory_capacity_bytes", "reason")


def row(planned: Planned, result: dict[str, Any], process: str, capacity: int, origin: str) -> dict[str, Any]:
    """The cells by column; those that are unknown are absent.

    capacity: bytes of which the share is told. Random weights are made, not loaded: their start-up is left
    out, since it tells nothing of the model's.
    """
    status = STATUS.get(result["outcome"], "failed")
    config = replace(planned.config, software=_software(result))
    steps, tokens = result.get("step") or 0, result.get("attempt_tokens") or 0
    batch = config.effective_batch_size
    peak = result.get("peak_memory_bytes") or 0
    figures = {
        "effective_batch_size": batch,
        "status": status,
        "tokens_per_second": result.get("tokens_per_s") if status == "ok" else None,
        "peak_memory_fraction": min(1.0, peak / capacity) if peak else None,
        "padded_tokens": tokens / (steps * batch) if steps and status == "ok" else None,
        "source": SOURCE,
        "origin": origin,
        "learn": int(status in ("ok", "oom")),
        "learn_validity": int(status in ("ok", "oom")),
        "flag_reason": "" if status in ("ok", "oom") else "ended with an error of data or code",
        "process": process,
        "steps": steps,
        "train_s": result.get("train_s"),
        "peak_memory_bytes": peak,
        "memory_capacity_bytes": result.get("memory_capacity_bytes"),
        "reason": str(result.get("reason", "")).partition("\n")[0][:200],
    }
    stated = {config_space.column_of(name): value for name, value in asdict(config).items()}
    cells = {**stated, **figures}
    return {name: _cell(value) for name, value in cells.items() if value is not None}


def _cell(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value:.6g}"
    return int(value) if isinstance(value, bool) else value


def _software(result: dict[str, Any]) -> str | None:
    versions = result.get("software") or {}
    return " ".join(f"{name} {version}" for name, version in sorted(versions.items())) or None


class Table:
    """The rows of a file, written as they come. Columns that no row needs are left out at the end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows: list[dict[str, Any]] = []

    def add(self, cells: dict[str, Any]) -> None:
        """Keep a row; the file is whole after each."""
        self._rows.append(cells)
        used = {name for found in self._rows for name in found}
        names = [name for name in (*COLUMNS, *MORE) if name in used]
        with self._path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, names, lineterminator="\n")
            writer.writeheader()
            writer.writerows(self._rows)

    @property
    def rows(self) -> list[dict[str, Any]]:
        return self._rows


def result_of(run: Path, code: int) -> dict[str, Any]:
    """The figures of a run's folder; of one that left none, how its process ended."""
    path = run / "result.json"
    if path.is_file():
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return found
    log = run / "log.txt"
    last = (log.read_text(encoding="utf-8", errors="replace").strip().splitlines() or [""])[-1]
    return {"outcome": "error", "reason": f"its process ended with {code}: {last}"}
