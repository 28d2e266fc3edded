"""Our own CSV, with one column for each field of the schema.

It is the format of knowledge/data/executions.csv and of the export.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, fields
from functools import partial
from typing import Any, get_type_hints

from knowledge.core.data.measurement import Measurement
from knowledge.core.data.sources.table import Cells, read
from knowledge.core.domain import adapted_layers, config_space
from knowledge.core.domain.catalogue import Catalogue
from knowledge.core.domain.types import Config

REQUIRED = (
    "model_name",
    "method",
    "gpu_model",
    "number_gpus",
    "tokens_per_sample",
    "per_device_batch_size",
    "status",
)
OUTCOMES = (
    "effective_batch_size",
    "status",
    "tokens_per_second",
    "runtime_s",
    "startup_s",
    "peak_memory_fraction",
    "gpu_memory_bytes",
    "padded_tokens",
    "source",
    "origin",
    "learn",
    "learn_validity",
    "flag_reason",
)
COLUMNS = (*(config_space.column_of(field.name) for field in fields(Config)), *OUTCOMES)
FORMULA = ("=", "+", "-", "@")  # cells that a spreadsheet would execute


def parse(text: str, catalogue: Catalogue) -> list[Measurement]:
    """The rows of a CSV in our schema."""
    return read(text, REQUIRED, _row, catalogue)


def write(rows: Iterable[Measurement]) -> str:
    """The rows as CSV, texts that look like formulas escaped with an apostrophe."""
    return "".join(lines(rows))


def lines(rows: Iterable[Measurement]) -> Iterator[str]:
    """Yield the CSV line by line, the header first.

    Few rows are held in memory, however many there are.
    """
    yield _line(COLUMNS)
    for row in rows:
        stated = {config_space.column_of(name): value for name, value in asdict(row.config).items()}
        values = {**stated, **{name: getattr(row, name) for name in OUTCOMES}}
        yield _line(_cell(values[name]) for name in COLUMNS)


def _line(cells: Iterable[Any]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(cells)
    return out.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def _row(cells: Cells) -> Measurement:
    learn, validity = cells.flag("learn"), cells.flag("learn_validity")
    return Measurement(
        config=_config(cells),
        status=cells.one_of("status", config_space.STATUSES),
        source=_plain(cells, "source") or "csv",
        origin=_plain(cells, "origin") or "",
        effective_batch_size=cells.whole("effective_batch_size") or 0,
        tokens_per_second=cells.number("tokens_per_second", 1e-6),
        runtime_s=cells.number("runtime_s", 1e-3),
        startup_s=cells.number("startup_s"),
        peak_memory_fraction=cells.number("peak_memory_fraction", 0, 1),
        gpu_memory_bytes=cells.number("gpu_memory_bytes", 1),
        padded_tokens=cells.number("padded_tokens", 1),
        learn=learn is not False,
        learn_validity=validity is not False,
        flag_reason=_plain(cells, "flag_reason") or "",
    )


def _plain(cells: Cells, column: str) -> str | None:
    value = cells.text(column)
    return value[1:] if value and value[0] == "'" and value[1:2] in FORMULA else value


_OTHERS = {name: config_space.PARAMS[name] for name in config_space.OTHER_SETTINGS}
_LOW = {"per_device_batch_size": 0, "expert_parallel": 0}
_CHOICES = {
    "tuning": config_space.TUNINGS,
    "precision": config_space.PRECISIONS,
    **{name: param.choices for name, param in _OTHERS.items() if param.choices},
}
Reader = Callable[[Cells, str], Any]


def _placement(cells: Cells, column: str) -> str | None:
    """Where adapters are, by one word or the names of modules; else unknown."""
    return adapted_layers.placement(cells.text(column) or "")


_NAMES: dict[str, Reader] = {
    "model_name": Cells.model,
    "gpu_model": Cells.gpu,
    "target_modules": _placement,
}


def _reader(name: str, kind: object) -> Reader:
    """How the column of a setting of that type is read."""
    if name in _NAMES:
        return _NAMES[name]
    if name in _CHOICES:
        return partial(Cells.choice, allowed=_CHOICES[name])
    if name in _OTHERS and _OTHERS[name].kind is not bool:
        low = _OTHERS[name].low or 0.0
        return partial(Cells.number, low=low) if kind == float | None else partial(Cells.whole, low=int(low))
    if kind in (int, int | None):
        return partial(Cells.whole, low=_LOW.get(name, 1))
    return Cells.flag if kind == bool | None else _plain


_READERS = {name: _reader(name, kind) for name, kind in get_type_hints(Config).items()}


def _config(cells: Cells) -> Config:
    values = {name: read_cell(cells, config_space.column_of(name)) for name, read_cell in _READERS.items()}
    for column in REQUIRED[:-1]:
        cells.need(column)
    return Config(**{name: value for name, value in values.items() if value is not None})
