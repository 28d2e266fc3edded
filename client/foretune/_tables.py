"""Figures and tables as people read them: in a terminal, and a plan in a notebook."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from ._models import Choice, Interval, Option, Plan, Promise

GAP = "  "
LEAST = 12  # characters that a column keeps that may be cut
MARKS = ">~"
PARAMETERS = ("parameter", "value", "chosen by", "~why")
FIGURES = {
    "duration_s": "time",
    "tokens_per_second": "tokens/s",
    "peak_memory_bytes": "memory",
    "cost": "cost",
}


def duration(seconds: float) -> str:
    """45 s, 12 min, 3 h 05 min or 2 d 4 h."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes:02} min"
    return f"{hours // 24} d {hours % 24} h"


def size(count: float) -> str:
    """Bytes, with a unit that suits them."""
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:,.0f} {unit}" if unit == "bytes" else f"{count:,.1f} {unit}"
        count /= 1024
    return f"{count:,.1f} GiB"


def moment(at: datetime | str | None) -> str:
    """In the reader's own time zone."""
    if at is None:
        return ""
    known = datetime.fromisoformat(at) if isinstance(at, str) else at
    return f"{known.astimezone():%Y-%m-%d %H:%M}"


def figure(name: str, value: float | None, currency: str = "") -> str:
    if value is None:
        return ""
    if name == "duration_s":
        return duration(value)
    if name == "peak_memory_bytes":
        return size(value)
    if name == "cost":
        return f"{value:,.2f} {currency}".strip()
    return f"{value:,.0f}"


def predicted(name: str, interval: Interval | None, currency: str = "") -> str:
    """A value and, in brackets, its interval; empty where nothing is predicted."""
    if interval is None or interval.value is None:
        return ""
    value = figure(name, interval.value, currency)
    if interval.low is None or interval.high is None:
        return value
    return f"{value} ({figure(name, interval.low)} to {figure(name, interval.high)})"


def table(rows: Sequence[Sequence[str]], headings: Sequence[str], *, width: int = 0) -> str:
    """Rows below headings, in columns.

    A heading that begins with `>` is that of a column that ends on the right, one with `~` of a column that
    may be cut. width: of the terminal, in characters; what does not fit even so is left out, from the right.
    0: there is no limit.
    """
    cells = [
        [heading.lstrip(MARKS) for heading in headings],
        *([plain(cell) for cell in row] for row in rows),
    ]
    columns = [max(map(len, column)) for column in zip(*cells, strict=True)]
    flexible = [number for number, heading in enumerate(headings) if heading.startswith("~")]
    while width and _width(columns) > width:
        longest = max(flexible, key=columns.__getitem__, default=None)
        if longest is not None and columns[longest] > LEAST:
            columns[longest] -= 1
        elif len(columns) > 1:
            columns.pop()
            flexible = [number for number in flexible if number < len(columns)]
        else:
            break
    right = [heading.startswith(">") for heading in headings]

    def line(of: Sequence[str]) -> str:
        fitted = [_cut(cell, room) for cell, room in zip(of, columns, strict=False)]
        padded = [
            cell.rjust(room) if is_right else cell.ljust(room)
            for cell, room, is_right in zip(fitted, columns, right, strict=False)
        ]
        return GAP.join(padded).rstrip()

    return "\n".join(map(line, cells))


def _width(columns: Sequence[int]) -> int:
    return sum(columns) + len(GAP) * (len(columns) - 1)


def plain(text: str, *, lines: bool = False) -> str:
    """Text of others without what would move a terminal's cursor.

    lines: line breaks and tabs stay.
    """
    kept = "\n\t" if lines else ""
    return "".join(
        character if character.isprintable() or character in kept else "" if lines else " "
        for character in text
    )


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def promise_rows(promise: Promise, currency: str) -> list[tuple[str, str]]:
    shown = [(title, predicted(name, getattr(promise, name), currency)) for name, title in FIGURES.items()]
    return [(title, text or "not predicted") for title, text in shown]


def place(option: Option) -> str:
    """On what an option runs, e.g. 2 x NVIDIA A100."""
    config: Mapping[str, Any] = option.config
    gpus = int(config.get("number_gpus") or 1) * int(config.get("number_nodes") or 1)
    return f"{gpus} x {config.get('gpu_model', '?')}"


def choices(params: Mapping[str, Choice]) -> list[tuple[str, str, str, str]]:
    """Each parameter with its value, who chose it and why."""
    chosen = {name: one for name, one in params.items() if one.value is not None}
    return [(name, _shown(one.value), one.by, one.reason) for name, one in chosen.items()]


def plan_text(plan: Plan, *, width: int = 100) -> str:
    parts = [_title(plan)]
    if plan.options:
        first = plan.options[0]
        rows = [("on", place(first)), *promise_rows(first, plan.currency)]
        parts.append("\n".join(f"  {name:10}{text}" for name, text in rows))
    else:
        parts.append("  No node could run it now; the notes say why.")
    parts.append(table(choices(plan.params), PARAMETERS, width=width))
    parts.extend(f"Note: {note}" for note in plan.notes)
    return "\n\n".join(part for part in parts if part)


def plan_html(plan: Plan) -> str:
    """The same figures as a table for notebooks."""

    def rows(cells: Sequence[Sequence[str]]) -> str:
        return "".join(
            f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in cells
        )

    first = plan.options[0] if plan.options else None
    promised = [("on", place(first)), *promise_rows(first, plan.currency)] if first else []
    headings = "".join(f"<th>{name.lstrip(MARKS)}</th>" for name in PARAMETERS)
    notes = "".join(f"<p>{html.escape(note)}</p>" for note in plan.notes)
    return (
        f"<p>{html.escape(_title(plan))}</p><table>{rows(promised)}</table>"
        f"<table><tr>{headings}</tr>{rows(choices(plan.params))}</table>{notes}"
    )


def _title(plan: Plan) -> str:
    return f"{plan.fields.get('model', '')} on {plan.fields.get('training_file', '')}".strip()


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
