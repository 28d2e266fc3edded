"""Configurations as columns, and as objects for the few that are scored.

Columns handle tens of thousands in milliseconds. A configuration is a kind (everything but its
sizes) with sizes of its own. Facts, flags and launch rules depend on the kind alone, so they
are looked up once per kind and spread over its rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knowledge.core.analytic.config_table import ConfigTable, columns
from knowledge.core.domain import config_space, workload
from knowledge.core.domain.arrays import Array, Mask
from knowledge.core.domain.catalogue import Catalogue
from knowledge.core.domain.types import Config, GpuPool, Workload

Rows = NDArray[np.intp]
Sizes = tuple[int, int, int]  # as named in SIZES
SIZES = ("tokens_per_sample", "per_device_batch_size", "gradient_accumulation_steps")
NAMES = tuple(field.name for field in fields(Config))


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """The columns of n configurations.

    Row i is `kinds[kind[i]]` with its own sizes, on `pools[kind[i]]`.

    kind, tokens, batch, accumulation: whole numbers of shape (n,).
    """

    kinds: tuple[Config, ...]
    pools: tuple[GpuPool, ...]
    kind: Rows
    tokens: Rows
    batch: Rows
    accumulation: Rows

    @classmethod
    def of(cls, found: Iterable[tuple[Config, GpuPool, Sequence[Sizes]]], catalogue: Catalogue) -> Candidates:
        """Build candidates from kinds with their pool and the sizes each may have.

        Kinds that break a launch rule are left out.
        """
        startable = [entry for entry in found if config_space.refused(entry[0], catalogue) is None]
        counts = np.array([len(sizes) for _, _, sizes in startable], dtype=np.intp)
        shapes = [np.array(sizes, dtype=np.intp).reshape(-1, 3) for _, _, sizes in startable]
        tokens, batch, accumulation = np.concatenate([*shapes, np.empty((0, 3), dtype=np.intp)]).T
        made = cls(
            kinds=tuple(config for config, _, _ in startable),
            pools=tuple(pool for _, pool, _ in startable),
            kind=np.repeat(np.arange(len(counts)), counts),
            tokens=tokens,
            batch=batch,
            accumulation=accumulation,
        )
        return made.take(np.flatnonzero((batch >= 1) & (accumulation >= 1)))

    def __len__(self) -> int:
        return len(self.kind)

    def take(self, rows: Rows) -> Candidates:
        """The chosen rows."""
        return replace(
            self,
            kind=self.kind[rows],
            tokens=self.tokens[rows],
            batch=self.batch[rows],
            accumulation=self.accumulation[rows],
        )

    def config(self, row: int) -> Config:
        """One row as a configuration."""
        return replace(
            self.kinds[int(self.kind[row])],
            tokens_per_sample=int(self.tokens[row]),
            per_device_batch_size=int(self.batch[row]),
            gradient_accumulation_steps=int(self.accumulation[row]),
        )

    def configs(self) -> list[Config]:
        """All rows as configurations."""
        # Rows by the thousand: filling in dictionaries takes half the time of dataclasses.replace.
        kinds = [{name: getattr(kind, name) for name in NAMES} for kind in self.kinds]
        sizes = zip(self.tokens.tolist(), self.batch.tolist(), self.accumulation.tolist(), strict=True)
        return [
            Config(**{**kinds[kind], **dict(zip(SIZES, of_row, strict=True))})
            for kind, of_row in zip(self.kind.tolist(), sizes, strict=True)
        ]

    def pool(self, row: int) -> GpuPool:
        """Where a row would run."""
        return self.pools[int(self.kind[row])]

    def bundle(self) -> Rows:
        """Return a number for each row, shape (n,).

        It is equal for rows of the same GPU model, nodes and GPUs, at one price and of one memory.
        """
        numbers: dict[tuple[str, int, int, float, int], int] = {}
        of_kind = [
            numbers.setdefault(
                (x.gpu_model, x.number_nodes, x.number_gpus, pool.price_per_gpu_hour, pool.memory_bytes),
                len(numbers),
            )
            for x, pool in zip(self.kinds, self.pools, strict=True)
        ]
        return np.array(of_kind, dtype=np.intp)[self.kind]

    def columns(self, catalogue: Catalogue, data: Workload | None = None) -> ConfigTable:
        """Return the columns, ready for arithmetic, with the memory of each row's pool.

        `data` says how long samples are once cut and padded. Raises UnknownModel.
        """
        sizes: dict[str, Any] = {
            "tokens": self.tokens.astype(float),
            "batch": self.batch.astype(float),
            "accumulation": self.accumulation.astype(float),
            "memory": np.array([pool.memory_bytes for pool in self.pools], dtype=float)[self.kind],
        }
        padded = sizes["tokens"] if data is None else self._padded(data)
        return replace(columns(self.kinds, catalogue).take(self.kind), **sizes, padded=padded)

    def _padded(self, data: Workload) -> Array:
        """Computed tokens of a sample: they depend on its length and the batches."""
        gpus = np.array([kind.number_gpus for kind in self.kinds])[self.kind]
        sizes = np.stack([self.tokens, self.batch, self.batch * self.accumulation * gpus])
        different, place = np.unique(sizes, axis=1, return_inverse=True)
        lengths = [workload.padded_length(data, *map(int, some)) or some[0] for some in different.T]
        return np.array(lengths, dtype=float)[place.reshape(-1)]


def best_of_each(groups: Rows, value: Array, count: int) -> Mask:
    """Select the `count` rows of each group with the highest values, shape (n,).

    Among equals, earlier rows come first.
    """
    order = np.lexsort((-value, groups))
    first = np.searchsorted(groups[order], groups[order])
    kept = np.zeros(len(groups), dtype=bool)
    kept[order[np.arange(len(groups)) - first < count]] = True
    return kept
