"""Own executions, ready to be looked up: exact repeats, and what ran on a GPU model."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from knowledge.core.data.measurement import Measurement
from knowledge.core.domain import config_space
from knowledge.core.domain.types import Config

ENOUGH_REPEATS = 2
RECENT = 100  # own runs of a GPU model that are looked at
Size = tuple[str, int, int, int]


@dataclass(frozen=True, slots=True)
class ExactMatch:
    """Measurements of repeats of one configuration."""

    rate: float | None
    memory_fraction: float | None
    runs: int
    out_of_memory: int

    @property
    def ran(self) -> float | None:
        """Share of those that ran, and did not run out of memory; None where neither happened."""
        ended = self.runs + self.out_of_memory
        return self.runs / ended if ended else None


@dataclass(frozen=True)
class Observations:
    """Own executions by configuration, and the measured ones by GPU model."""

    repeats: Mapping[str, ExactMatch]
    gpus: Mapping[str, tuple[Measurement, ...]]
    sizes: frozenset[Size]

    @classmethod
    def of(cls, rows: Sequence[Measurement]) -> Observations:
        """From own rows, oldest first."""
        same: dict[str, list[Measurement]] = {}
        gpus: dict[str, list[Measurement]] = {}
        for row in rows:
            same.setdefault(_repeat_key(row.config, row.padded_tokens), []).append(row)
            if row.measured:
                gpus.setdefault(config_space.canonical(row.config).gpu_model, []).append(row)
        return cls(
            {key: _repeat(found) for key, found in same.items()},
            {gpu: _recent(found) for gpu, found in gpus.items()},
            frozenset(_size(row.config) for row in rows),
        )

    def repeat(self, config: Config, padded: float | None) -> ExactMatch | None:
        """Measurements of repeats of this configuration, if there are any."""
        if _size(config) not in self.sizes:
            return None
        return self.repeats.get(_repeat_key(config_space.canonical(config), padded))


def _size(config: Config) -> Size:
    """Quick to compare: most of thousands of configurations have no repeat, and an identity takes long."""
    return config.method, config.number_gpus, config.tokens_per_sample, config.per_device_batch_size


def _recent(rows: Sequence[Measurement]) -> tuple[Measurement, ...]:
    """The newest runs, of every model and method in turn: one that is trained daily must not hide others."""
    newer: Counter[tuple[str, str]] = Counter()
    turns = []
    for age, row in enumerate(reversed(rows)):
        kind = (row.config.model_name, row.config.method)
        turns.append((newer[kind], age))
        newer[kind] += 1
    return tuple(rows[-1 - age] for _, age in sorted(turns)[:RECENT])


def _repeat_key(config: Config, padded: float | None) -> str:
    """Equal configurations on data padded to about the same length."""
    length = padded or config.tokens_per_sample
    return f"{config_space.config_hash(config)}:{round(4 * math.log2(max(1.0, length)))}"


def _repeat(rows: Sequence[Measurement]) -> ExactMatch:
    rates = [row.tokens_per_second for row in rows if row.measured and row.tokens_per_second]
    memory = [row.peak_memory_fraction for row in rows if row.peak_memory_fraction and row.status == "ok"]
    return ExactMatch(
        rate=median(rates) if len(rates) >= ENOUGH_REPEATS else None,
        memory_fraction=max(memory) if memory else None,
        runs=sum(row.status == "ok" for row in rows),
        out_of_memory=sum(row.status == "oom" for row in rows),
    )
