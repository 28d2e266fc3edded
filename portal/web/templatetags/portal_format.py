"""How figures look on pages: always with their unit, never with more digits than they deserve."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()
UNKNOWN = "–"
FAILURES = {"user": "data or code", "resource": "resources", "system": "nodes and infrastructure"}
ACRONYMS = {"lora": "LoRA", "gpu": "GPU", "gpus": "GPUs"}
LABELS = {
    "number_gpus": "Number of GPUs",
    "number_nodes": "Number of nodes",
    "per_device_batch_size": "Batch size per GPU",
    "prompt_completion": "Prompt and completion",
}


@register.filter
def duration(seconds: float | None) -> str:
    """E.g. `20 ms`, `0.4 s`, `12 s`, `3 min 20 s`, `5 h 10 min`, `2 d 3 h`."""
    if seconds is None:
        return UNKNOWN
    if 0 < seconds < 0.1:
        return f"{seconds * 1000:.3g} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for size, unit, smaller, smaller_unit in (
        (86_400, "d", 3600, "h"),
        (3600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if whole >= size:
            rest = whole % size // smaller
            return f"{whole // size} {unit}" + (f" {rest} {smaller_unit}" if rest else "")
    return f"{whole} s"


@register.filter
def size(count: float | None) -> str:
    """Bytes in binary units, e.g. `1.5 GiB`."""
    if count is None:
        return UNKNOWN
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


@register.filter
def number(value: Any) -> str:
    """Thousands separated; three significant digits below a hundred."""
    if value is None or value == "":
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, int | float):
        return str(value)
    return f"{value:,.0f}" if isinstance(value, int) or abs(value) >= 100 else f"{value:.3g}"


@register.filter
def count(value: float) -> str:
    """A large count in short, e.g. `8.0 B` for 8 billion."""
    for scale, unit in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if value >= scale:
            return f"{value / scale:.1f} {unit}"
    return f"{value:.0f}"


def counted(count: int, noun: str) -> str:
    """E.g. `1 run`, `1,200 runs`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


@register.filter
def percent(share: float | None) -> str:
    return UNKNOWN if share is None else f"{share:.0%}"


@register.filter
def words(name: str) -> str:
    """A parameter's name as a label: `lora_r` becomes `LoRA r`."""
    if name in LABELS:
        return LABELS[name]
    text = " ".join(ACRONYMS.get(word, word) for word in name.split("_"))
    return text[:1].upper() + text[1:]


@register.filter
def failure(kind: str) -> str:
    """Where the cause of a job's failure lies, by its class."""
    return FAILURES.get(kind, "unknown cause")


@register.filter
def figure_name(name: str) -> str:
    """The label of a compared figure."""
    return FIGURES[name][0]


@register.filter
def figure(value: float | None, name: str) -> str:
    """A compared figure in its own unit."""
    return FIGURES[name][1](value)


@register.filter
def ago(moment: datetime | None) -> str | SafeString:
    """How long ago, with the exact time on hover and for machines."""
    if moment is None:
        return UNKNOWN
    passed = (timezone.now() - moment).total_seconds()
    told = _whole(abs(passed))
    text = "just now" if abs(passed) < 5 else f"{told} ago" if passed > 0 else f"in {told}"
    return format_html('<time data-ago datetime="{}" title="{}">{}</time>', *_exactly(moment), text)


@register.filter
def lasting(moment: datetime) -> SafeString:
    """For how long by now, e.g. `for 3 min 20 s`, on what is fetched anew while it lasts."""
    text = f"for {_whole(max(0.0, (timezone.now() - moment).total_seconds()))}"
    return format_html('<time datetime="{}" title="{}">{}</time>', *_exactly(moment), text)


def _whole(seconds: float) -> str:
    """Without tenths, which would change at every look."""
    return duration(seconds) if seconds >= 60 else f"{seconds:.0f} s"


def _exactly(moment: datetime) -> tuple[str, str]:
    """A moment for machines, and for people."""
    exact = timezone.localtime(moment)
    return exact.isoformat(), f"{exact:%Y-%m-%d %H:%M:%S %Z}"


FIGURES: dict[str, tuple[str, Callable[[Any], str]]] = {
    "duration_s": ("Duration", duration),
    "tokens_per_second": ("Tokens per second", number),
    "peak_memory_bytes": ("Peak memory per GPU", size),
    "cost": ("Cost", number),
}
