"""The shared errors of predictions on one GPU model.

They decide how much own runs say about configurations that never ran.

An unfamiliar GPU is off in its own way in computing, in the work of its host and in its links.
So errors are shared by configurations that wait for the same of the three, by those whose steps
have the same parts, and by those of near sizes. Errors that do not come from the GPU are shared
within a model and tuning alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from knowledge.core.analytic.config_table import ConfigTable
from knowledge.core.analytic.step_time import step_parts
from knowledge.core.domain.arrays import Array
from knowledge.core.domain.types import Config
from knowledge.core.predict import gp_residual

LEVELS = 3  # resources, parts, sizes: nobody knows which of them explains most, so each has a third
NEAR = 2.0  # doublings of a size, or settings that differ, after which e times less is shared


@dataclass(frozen=True, slots=True)
class ErrorKernel:
    """n configurations on one GPU model, by what their errors depend on.

    of_gpu, of_kind: variances of ln θ, (n,): how far off predictions are because the GPU is unfamiliar, and
    because of the model, tuning and software. busy: shares of a step that device, host and network work, as
    vectors of length 1, (n, 3). parts: shares of its parts, (n, k). sizes: in doublings, (n, 8).
    """

    kinds: Array
    of_gpu: Array
    of_kind: Array
    busy: Array
    parts: Array
    sizes: Array

    @classmethod
    def of(
        cls,
        configs: Sequence[Config],
        c: ConfigTable,
        spread: Array,
        of_gpu: Array,
        weights: Array | None = None,
    ) -> ErrorKernel:
        """Build the kernel from the configurations' columns.

        A difference in software alone is worth one σ.

        spread: variance of the predictions' ln θ, (n,).
        of_gpu: the part of it that comes from the GPU, (n,).
        weights: of the parts of a step, the stated ones by default.
        """
        busy, parts = _step(c, weights)
        named = zip(c.model_key, configs, strict=True)
        kinds = np.array([workload_kind(model, config.tuning) for model, config in named])
        of_kind = np.maximum(spread - of_gpu, gp_residual.SIGMA**2)
        return cls(kinds, of_gpu, of_kind, busy, parts, sizes_of(c))

    @property
    def variance(self) -> Array:
        """Variance of ln θ before any own run, shape (n,)."""
        total: Array = self.of_gpu + self.of_kind
        return total

    def covariance(self, other: ErrorKernel) -> Array:
        """Covariance of errors: these n and the other's m configurations, shape (n, m)."""
        from scipy.spatial.distance import cdist  # own runs alone need it, and it takes a fifth of a second

        of_gpu = np.sqrt(np.outer(self.of_gpu, other.of_gpu)) / LEVELS
        of_kind = np.sqrt(np.outer(self.of_kind, other.of_kind))
        busy = self.busy @ other.busy.T
        alike = np.exp(-cdist(self.parts, other.parts, "cityblock"))
        near = np.exp(-cdist(self.sizes, other.sizes, "cityblock") / NEAR)
        same = self.kinds[:, None] == other.kinds[None, :]
        shared: Array = of_gpu * (busy + alike + near) + of_kind * near * same
        return shared


def workload_kind(model_key: str, tuning: str) -> str:
    """Model, by the catalogue's name, and tuning."""
    return f"{model_key}|{tuning}"


def _step(c: ConfigTable, weights: Array | None) -> tuple[Array, Array]:
    """(busy, parts) of `ErrorKernel`."""
    stated = step_parts(c)
    ends = np.cumsum([part.shape[1] for part in stated])
    seconds = np.column_stack(stated) * (np.ones(ends[-1]) if weights is None else weights)
    busy = np.column_stack([part.sum(axis=1) for part in np.split(seconds, ends[:-1], axis=1)])
    length = np.linalg.norm(busy, axis=1, keepdims=True)
    return busy / length, seconds / length


def sizes_of(c: ConfigTable) -> Array:
    """Return the `sizes` of `ErrorKernel`.

    They are in doublings; settings follow, each of which counts as one where it differs.
    """
    names = ("parameters", "gpus", "batch", "padded", "checkpointing", "fsdp", "adapter", "quantized")
    doublings = [np.log2(np.maximum(getattr(c, name), 1)) for name in names[:4]]
    return np.column_stack([*doublings, *(getattr(c, name).astype(float) for name in names[4:])])
