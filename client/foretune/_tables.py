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
MOST_STEPS = 20  # that a notebook shows of a training
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
    """Each figure with its interval; no cost where the portal has no prices."""
    told = [name for name in FIGURES if name != "cost" or currency or (promise.cost and promise.cost.value)]
    shown = [(FIGURES[name], predicted(name, getattr(promise, name), currency)) for name in told]
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
    first = plan.options[0] if plan.options else None
    promised = [("on", place(first)), *promise_rows(first, plan.currency)] if first else []
    notes = "".join(f"<p>{html.escape(note)}</p>" for note in plan.notes)
    return (
        f"<p>{html.escape(_title(plan))}</p>{_html(promised)}"
        f"{_html(choices(plan.params), headings=PARAMETERS)}{notes}"
    )


def steps_text(rows: Sequence[Mapping[str, Any]]) -> str:
    cells, names = _steps(rows)
    return table(cells, [f">{name}" for name in names]) if rows else "nothing measured"


def steps_html(rows: Sequence[Mapping[str, Any]]) -> str:
    cells, names = _steps(rows)
    return _html(cells, headings=names)


def _steps(rows: Sequence[Mapping[str, Any]]) -> tuple[list[list[str]], list[str]]:
    """Cells and names of what was measured.

    The middle of many rows is left out, and names that no row has.
    """
    names = [name for name in (rows[0] if rows else {}) if name != "id"]
    names = [name for name in names if any(row[name] is not None for row in rows)]
    cells = [["" if row[name] is None else _shown(row[name]) for name in names] for row in rows]
    if len(cells) > MOST_STEPS:
        half = MOST_STEPS // 2
        cells = [*cells[:half], ["…"] * len(names), *cells[-half:]]
    return cells, names


def _html(cells: Sequence[Sequence[str]], *, headings: Sequence[str] = ()) -> str:
    def row(of: Sequence[str], tag: str) -> str:
        return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in of)}</tr>"

    head = row([heading.lstrip(MARKS) for heading in headings], "th") if headings else ""
    return f"<table>{head}{''.join(row(cell, 'td') for cell in cells)}</table>"


def _title(plan: Plan) -> str:
    return f"{plan.fields.get('model', '')} on {plan.fields.get('training_file', '')}".strip()


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
