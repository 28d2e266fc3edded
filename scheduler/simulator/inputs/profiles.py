"""Sia's and Pollux' measured applications.

The profiles hold step times by placement and statistical efficiency by progress. Goodput is
throughput times efficiency (Qiao et al., Pollux, OSDI 2021): with gradient noise measured at
the initial batch, a batch `c` times as large is worth `(var + sqr) / (var / c + sqr)` initial
batches a step. Where a placement was not measured, step times are interpolated linearly over
(nodes, GPUs, local batch).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from scheduler.core.placement.fit import Shares
from scheduler.simulator.errors import TraceError
from scheduler.simulator.inputs.files import Row

if TYPE_CHECKING:
    from scipy.interpolate import LinearNDInterpolator

Array = NDArray[np.float64]

_MAX_NODES = 16  # the largest number of nodes that was measured
_ALIASES = {
    "gpu": "default", "t4": "aws", "2080ti": "rtx", "rtx2080ti": "rtx", "a100": "dgx-ext", "v100": "azure",
    "rtx6000": "quad",
}  # fmt: skip


def profiled_gpu(gpu_model: str) -> str:
    """The name under which this GPU model was measured."""
    return _ALIASES.get(gpu_model.lower(), gpu_model)


@dataclass(frozen=True, slots=True)
class Batches:
    """Ways to split global batches over a placement; arrays of equal length."""

    size: Array  # examples a step, all GPUs together
    local: Array  # examples a GPU computes at once
    accumulation: Array  # further micro-batches before the step


class Application:
    """Measurements of an application. Progress is steps of the initial batch size."""

    def __init__(self, name: str, validation: Iterable[Row]) -> None:
        self.name = name
        rows: dict[float, list[Row]] = defaultdict(list)
        for row in validation:
            rows[float(row["batch_size"])].append(row)
        self.batch_sizes = np.array(sorted(rows))
        self.epochs = min(len(rows[size]) for size in rows)
        self._sqr = self._table(rows, "grad_sqr")
        self._var = self._table(rows, "grad_var")
        self.progress = self._table(rows, "progress").min(axis=0)  # at the end of each epoch
        self.ends: list[float] = (self.progress / self.progress[-1]).tolist()  # the same as shares of all
        self.steps: dict[str, StepTimes] = {}

    def _table(self, rows: dict[float, list[Row]], column: str) -> Array:
        return np.array(
            [[float(row[column]) for row in rows[size][: self.epochs]] for size in self.batch_sizes]
        )

    @property
    def initial_batch(self) -> float:
        return float(self.batch_sizes[0])

    @property
    def largest_batch(self) -> float:
        return float(self.batch_sizes[-1])

    def epoch(self, done: float) -> int:
        """The epoch that is running once this share of all progress is done."""
        return min(bisect_right(self.ends, done * (1 + 1e-12)), self.epochs - 1)

    def gains(self, sizes: Array) -> Array:
        """Return the progress of a step of each batch size in each epoch.

        It is in steps of the initial batch. Shape (sizes, epochs).
        """
        known = self.batch_sizes
        place = np.interp(sizes, known, np.arange(len(known)))
        below = np.minimum(place.astype(int), max(len(known) - 2, 0))
        above, part = np.minimum(below + 1, len(known) - 1), (place - below)[:, None]
        sqr = self._sqr[below] * (1 - part) + self._sqr[above] * part
        var = self._var[below] * (1 - part) + self._var[above] * part
        denominator = var * (self.initial_batch / sizes)[:, None] + sqr
        safe = np.where(denominator > 0, denominator, 1.0)
        return np.where(denominator > 0, (var + sqr) / safe, 1.0)


class StepTimes:
    """Measured seconds of a step and of its synchronisation on one GPU model."""

    def __init__(self, placements: Iterable[Row], scalability: Iterable[Row]) -> None:
        self._measured: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
        self._points: dict[tuple[int, int, float], list[tuple[float, float]]] = defaultdict(list)
        for row in placements:
            local, step, sync = (float(row[column]) for column in ("local_bsz", "step_time", "sync_time"))
            digits = row["placement"]
            self._measured[digits].append((local, step, sync))
            self._points[len(digits), sum(map(int, digits)), local].append((step, sync))
        self.least_local = min(local for rows in self._measured.values() for local, _, _ in rows)
        self.most_local = max(local for rows in self._measured.values() for local, _, _ in rows)
        for row in scalability:
            key = int(row["num_nodes"]), int(row["num_replicas"]), float(row["local_bsz"])
            self._points[key].append((float(row["step_time"]), float(row["sync_time"])))

    @cached_property
    def _anywhere(self) -> LinearNDInterpolator:
        from scipy.interpolate import LinearNDInterpolator  # half a second that few simulations need

        keys = sorted(self._points)
        return LinearNDInterpolator(
            np.array(keys), np.array([np.mean(self._points[key], axis=0) for key in keys])
        )

    def of(self, shares: Shares, local: Array) -> tuple[Array, Array]:
        """Return (step, sync) seconds for local batches, shape (n,).

        NaN where nothing near was measured.
        shares: GPUs on each node, smallest first.
        """
        rows = self._measured.get("".join(map(str, shares)))
        if rows is None:
            nodes = np.full_like(local, min(len(shares), _MAX_NODES))
            found = self._anywhere(np.column_stack([nodes, np.full_like(local, sum(shares)), local]))
            return found[:, 0], found[:, 1]
        table = np.array(sorted(rows))
        step, sync = (np.interp(local, table[:, 0], table[:, c], np.nan, np.nan) for c in (1, 2))
        return step, sync


def read_applications(
    validation: Iterable[Row], placements: Iterable[Row], scalability: Iterable[Row]
) -> dict[str, Application]:
    """Read the applications of Sia's published profiles.

    Raises TraceError if a column is missing.
    """
    try:
        by_app = _grouped(validation, "app")
        measured, scaled = _grouped(placements, "app", "gpu_type"), _grouped(scalability, "app", "gpu_type")
        applications = {key[0]: Application(key[0], rows) for key, rows in by_app.items()}
        for (name, gpu), rows in measured.items():
            applications[name].steps[gpu] = StepTimes(rows, scaled.get((name, gpu), []))
    except KeyError as missing:
        raise TraceError(f"the profiles lack the column or application {missing}") from missing
    return applications


def _grouped(rows: Iterable[Row], *columns: str) -> dict[tuple[str, ...], list[Row]]:
    groups: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[column] for column in columns)].append(row)
    return groups
