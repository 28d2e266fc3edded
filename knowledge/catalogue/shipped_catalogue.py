"""The catalogue that comes with the project.

It is read from the tables in `knowledge/data`.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import fields
from functools import lru_cache
from importlib.resources import files
from typing import Any, get_type_hints

from knowledge.core.domain.catalogue import GIB, Catalogue, GpuModel, Model

_TABLES = files("knowledge") / "data"


@lru_cache(maxsize=1)
def shipped_catalogue() -> Catalogue:
    """Models and GPUs of the shipped tables; read once a process."""
    return Catalogue.of(_models(), _gpus())


def _rows(file: str) -> list[dict[str, str]]:
    return list(csv.DictReader((_TABLES / file).read_text(encoding="utf-8").splitlines()))


def _models() -> Iterator[tuple[Model, list[str]]]:
    types = get_type_hints(Model)
    for row in _rows("models.csv"):
        cells = {f.name: row[f.name] for f in fields(Model) if row.get(f.name)}
        values: dict[str, Any] = {
            name: cell if types[name] is str else types[name](float(cell)) for name, cell in cells.items()
        }
        if row["model_name"].startswith("builtin/"):
            values["bytes_per_token"] = 1.0
        yield Model(**values), [row["model_name"], *row["aliases"].split("|")]


def _gpus() -> Iterator[tuple[GpuModel, list[str]]]:
    for row in _rows("gpus.csv"):
        entry = GpuModel(
            gpu_model=row["gpu_model"],
            memory_bytes=float(row["memory_gib"] or 4) * GIB,
            bf16_flops=_flops(row["bf16_tflops_dense"]),
            fp16_flops=_flops(row["fp16_tflops_dense"]),
            fp32_flops=_flops(row["tf32_tflops_dense"] or row["fp32_tflops"]),
            whole_fp32_flops=_flops(row["fp32_tflops"]),
            bandwidth_bytes_s=float(row["memory_bandwidth_gb_s"]) * 1e9,
            link=row["link"],
            link_bytes_s=float(row["link_gb_s_per_direction_total"]) * 1e9,
            vendor=row["vendor"],
            fp8_flops=_flops(row["fp8_tflops_dense"]),
            usable_bytes=float(row["usable_gib"]) * GIB if row["usable_gib"] else None,
        )
        yield entry, [row["gpu_model"], *row["aliases"].split("|")]


def _flops(cell: str) -> float | None:
    return float(cell) * 1e12 if cell else None
