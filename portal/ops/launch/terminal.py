"""A job in the terminal: progress while it runs, a comparison when it has ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from knowledge.core.domain.wording import money

REQUIRED = ("model", "training_file")
FIGURES = {
    "duration_s": ("duration", "s"),
    "tokens_per_second": ("throughput", "tokens/s"),
    "peak_memory_bytes": ("peak memory", "MiB"),
    "cost": ("cost", ""),
}
INSIDE = {True: "yes", False: "no", None: ""}


def progress_line(job: Mapping[str, Any]) -> Text:
    """State, step, loss, tokens/s, time left; or why the job waits."""
    progress, parts = job["progress"], [f"[{job['state']}]"]
    if job["state"] == "queued":
        parts.append((job["wait"] or {}).get("text") or "waiting for the scheduler")
    elif job["stage"]:
        parts.append(job["stage"])
    else:
        parts.append(f"step {progress['step']}/{progress['total_steps'] or '?'}")
        parts.append(f"loss {progress['loss']:.3f}" if progress["loss"] is not None else "")
        rate = progress["tokens_per_second"]
        parts.append(f"{rate:,.0f} tokens/s" if rate is not None else "")
        parts.append(f"{progress['eta_s']:.0f} s left" if progress["eta_s"] is not None else "")
    if progress["silent_since"] is not None:
        parts.append(f"nothing heard of it since {progress['silent_since']}")
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
    table = Table(title="Promise and result", title_justify="left", box=box.SIMPLE_HEAD)
    for heading in ("", "promised", "interval (80 %)", "actual", "inside"):
        table.add_column(heading, justify="left" if heading in ("", "inside") else "right", no_wrap=True)
    for line in job["comparison"]:
        title, unit = FIGURES[line["name"]]
        table.add_row(title, *_compared(line, unit or job["currency"]))
    return table


def loss(job: Mapping[str, Any]) -> str:
    """Where the training loss began and where it is."""
    return f"{job['first_loss']:.3f} -> {job['progress']['loss']:.3f}"


def _compared(line: Mapping[str, Any], unit: str) -> tuple[str, ...]:
    value, low, high, actual = (
        _number(line[name], line["name"]) for name in ("value", "low", "high", "actual")
    )
    measured = f"{actual} {unit}".strip() if actual else "unknown"
    if not low or not high:
        return "not predicted", "", measured, ""
    return f"{value} {unit}".strip(), f"{low} to {high}", measured, INSIDE[line["inside"]]


def _number(value: float | None, name: str) -> str:
    """The figure without its unit; empty where it is unknown."""
    if value is None:
        return ""
    if name == "cost":
        return money(value, "")
    return f"{value / 2**20 if name == 'peak_memory_bytes' else value:,.0f}"


def _value(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
