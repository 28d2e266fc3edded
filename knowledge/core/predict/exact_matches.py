"""Own executions, indexed for look-up.

They are found as exact repeats of a configuration and by GPU model.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from knowledge.core.analytic.config_table import ConfigTable
from knowledge.core.data.measurement import Measurement, known_rows
from knowledge.core.domain import config_space
from knowledge.core.domain.catalogue import Catalogue
from knowledge.core.domain.types import Config

ENOUGH_REPEATS = 2
RECENT = 100  # own runs of a GPU model that are looked at
Size = tuple[str, int, int, int]


@dataclass(frozen=True, slots=True)
class ExactMatch:
    """Measurements of repeats of one configuration; memory in bytes of one GPU."""

    rate: float | None
    memory: float | None
    runs: int
    out_of_memory: int

    @property
    def ran(self) -> float | None:
        """Share of the runs that succeeded instead of running out of memory.

        None where neither happened.
        """
        ended = self.runs + self.out_of_memory
        return self.runs / ended if ended else None


@dataclass(frozen=True)
class Observations:
    """Own executions by configuration; by GPU model those with a rate or a peak."""

    repeats: Mapping[str, ExactMatch] = field(default_factory=dict)
    gpus: Mapping[str, tuple[Measurement, ...]] = field(default_factory=dict)
    peaks: Mapping[str, tuple[Measurement, ...]] = field(default_factory=dict)
    sizes: frozenset[Size] = frozenset()

    @classmethod
    def of(cls, rows: Sequence[Measurement], catalogue: Catalogue) -> Observations:
        """Sort own rows, oldest first; those that the catalogue lacks are left out."""
        same: dict[str, list[Measurement]] = {}
        gpus: dict[str, list[Measurement]] = {}
        peaks: dict[str, list[Measurement]] = {}
        rows = known_rows(rows, catalogue)
        for row in rows:
            config = catalogue.canonical(row.config)
            same.setdefault(_repeat_key(config, row.padded_tokens), []).append(row)
            if row.measured:
                gpus.setdefault(config.gpu_model, []).append(row)
            if row.has_peak:
                peaks.setdefault(config.gpu_model, []).append(row)
        return cls(
            {key: _repeat(found, catalogue) for key, found in same.items()},
            {gpu: _recent(found) for gpu, found in gpus.items()},
            {gpu: _recent(found) for gpu, found in peaks.items()},
            frozenset(_size(row.config) for row in rows),
        )

    def repeat(self, config: Config, c: ConfigTable, row: int) -> ExactMatch | None:
        """Measurements of repeats of a row's configuration, if there are any."""
        if _size(config) not in self.sizes:
            return None
        return self.repeats.get(_repeat_key(c.canonical(config, row), float(c.padded[row])))


def _size(config: Config) -> Size:
    """Return a key that is quick to compare.

    Most of thousands of configurations have no repeat, and computing an identity takes long.
    """
    return config.tuning, config.number_gpus, config.tokens_per_sample, config.per_device_batch_size


def _recent(rows: Sequence[Measurement]) -> tuple[Measurement, ...]:
    """Return the newest runs, taking turns between models and tunings.

    A model that is trained daily must not hide others.
    """
    newer: Counter[tuple[str, str]] = Counter()
    turns = []
    for age, row in enumerate(reversed(rows)):
        kind = (row.config.model_name, row.config.tuning)
        turns.append((newer[kind], age))
        newer[kind] += 1
    return tuple(rows[-1 - age] for _, age in sorted(turns)[:RECENT])


def _repeat_key(config: Config, padded: float | None) -> str:
    """Equal configurations on data padded to about the same length."""
    length = padded or config.tokens_per_sample
    return f"{config_space.config_hash(config)}:{round(4 * math.log2(max(1.0, length)))}"


def _repeat(rows: Sequence[Measurement], catalogue: Catalogue) -> ExactMatch:
    rates = [row.tokens_per_second for row in rows if row.measured and row.tokens_per_second]
    memory = [
        row.peak_memory_fraction * (row.gpu_memory_bytes or catalogue.gpu(row.config.gpu_model).memory_bytes)
        for row in rows
        if row.peak_memory_fraction and row.status == "ok"
    ]
    return ExactMatch(
        rate=median(rates) if len(rates) >= ENOUGH_REPEATS else None,
        memory=max(memory) if memory else None,
        runs=sum(row.status == "ok" for row in rows),
        out_of_memory=sum(row.status == "oom" for row in rows),
    )
