"""A job in the terminal: progress while it runs, a comparison when it has ended."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

REQUIRED = ("model", "training_file")


def progress_line(job: Mapping[str, Any]) -> Text:
    """State, step, loss, tokens/s, time left; or why the job waits."""
    progress, parts = job["progress"], [f"[{job['state']}]"]
    if job["state"] == "queued":
        parts.append((job["wait"] or {}).get("text") or "waiting for the scheduler")
    elif not progress["step"]:
        parts.append("starting: process, model, data" if job["internal_state"] == "starting" else "")
    else:
        parts.append(f"step {progress['step']}/{progress['total_steps'] or '?'}")
        parts.append(f"loss {progress['loss']:.3f}" if progress["loss"] is not None else "")
        parts.append(f"{progress['tokens_per_second'] or 0:,.0f} tokens/s")
        parts.append(f"{progress['eta_s']:.0f} s left" if progress["eta_s"] is not None else "")
    return Text("  ".join(part for part in parts if part))


def configuration(job: Mapping[str, Any]) -> Table:
    """The required values, and the source and reason of all others."""
    table = Table(title="Configuration", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("parameter", no_wrap=True)
    table.add_column("value", overflow="fold")
    table.add_column("chosen by", min_width=len("recommended"))
    table.add_column("why", min_width=20)
    for name in REQUIRED:
        table.add_row(name, str(job[name]), "user", "required")
    for name, choice in job["params"].items():
        if choice["value"] is not None:
            table.add_row(name, _value(choice["value"]), choice["by"], choice["reason"])
    return table


def comparison(job: Mapping[str, Any]) -> Table:
    """Promised against actual, with the interval that holds four times in five."""
    promise, actual = job["attempts"][-1]["promise"], actual_of(job)
    table = Table(title="Promised and actual", title_justify="left", box=box.SIMPLE_HEAD)
    for heading in ("", "promised", "interval (80 %)", "actual", "inside"):
        table.add_column(heading, justify="left" if heading in ("", "inside") else "right", no_wrap=True)
    for title, name, unit in (
        ("duration", "duration_s", "s"),
        ("throughput", "tokens_per_second", "tokens/s"),
        ("peak memory", "peak_memory_bytes", "MiB"),
    ):
        table.add_row(title, *_compared(promise[name], actual[name], unit))
    return table


def actual_of(job: Mapping[str, Any]) -> dict[str, float | None]:
    """Measured figures of the last attempt, under the names of the promise."""
    attempt = job["attempts"][-1]
    measured = attempt["measured"]
    return {
        "duration_s": _seconds_between(attempt["created_at"], attempt["ended_at"]),
        "tokens_per_second": measured.get("tokens_per_s"),
        "peak_memory_bytes": attempt["peak_memory_bytes"] or measured.get("peak_memory_bytes"),
    }


def _seconds_between(start: str | None, end: str | None) -> float | None:
    """Promised and actual duration run from an attempt's start to its end, waiting left out."""
    if start is None or end is None:
        return None
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


def _compared(promised: Mapping[str, Any] | None, actual: float | None, unit: str) -> tuple[str, ...]:
    if promised is None or promised["low"] is None or promised["high"] is None:
        return "not foretold", "", _amount(actual, unit), ""
    inside = "" if actual is None else "yes" if promised["low"] <= actual <= promised["high"] else "no"
    interval = f"{_number(promised['low'], unit)} to {_number(promised['high'], unit)}"
    return _amount(promised["value"], unit), interval, _amount(actual, unit), inside


def _amount(value: float | None, unit: str) -> str:
    if value is None:
        return "unknown"
    return f"{_number(value, unit)} {unit}"


def _number(value: float, unit: str) -> str:
    return f"{value / 2**20 if unit == 'MiB' else value:,.0f}"


def _value(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
