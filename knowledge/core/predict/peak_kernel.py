"""The shared errors of predicted peaks on one GPU model.

By physics alone the error of ln(peak) is a sum of random effects (a linear mixed model: Laird and Ware 1982).
Software on a GPU holds more or less of a term of memory than it should, and holds it with every model and
tuning, but for other ways to run less so, and hardly between mixtures of experts and other models. A model
errs in its terms as well, wherever it runs, and a model and tuning in sizes near each other. How far effects
lie apart between sources and between models, the history tells (`benchmarks/knowledge/peak_effects.py`).
Of rows that history answers only the last of these effects is left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from knowledge.core.analytic import cost_model
from knowledge.core.analytic.config_table import ConfigTable
from knowledge.core.analytic.stack import is_ours, software_family
from knowledge.core.domain.arrays import Array, Mask
from knowledge.core.domain.types import Config
from knowledge.core.predict.error_kernel import NEAR, sizes_of, workload_kind

OURS = "foretune"  # software of runs of our trainer, which state its libraries
APART = 6.0  # flags as which a mixture counts that its errors are hardly shared with other models
WAYS = ("checkpointing", "fsdp", "adapter", "quantized", "fused", "packed")  # flags that differ by way to run


class TermSpread(NamedTuple):
    """Standard deviations of ln(term) between sources, and between models."""

    source: float
    model: float


@dataclass(frozen=True, slots=True)
class PeakEffects:
    """Standard deviations of ln(peak).

    terms: where a term is all of the peak. alike: of all runs of a source. kind: of a model and tuning.
    run: of a run.
    """

    terms: Mapping[str, TermSpread]
    alike: float
    kind: float
    run: float


EFFECTS = PeakEffects(
    terms={
        "states": TermSpread(0.08, 0.12),
        "activations": TermSpread(0.10, 0.10),
        "logits": TermSpread(0.24, 0.12),
        "overhead": TermSpread(0.14, 0.81),
        "gathered": TermSpread(0.30, 0.12),
    },
    alike=0.08,
    kind=0.09,
    run=0.07,
)


@dataclass(frozen=True, slots=True)
class PeakKernel:
    """n configurations on one GPU model, by what the errors of their peaks depend on.

    of_source, of_model: effects of terms, (n, k), in ln(peak). of_kind: variance because of the model and
    tuning, (n,). ways: GPUs in doublings, flags, mixtures and those whose experts GPUs share, (n, 9). sizes:
    in doublings, (n, 8). physics: the rows that physics alone predicts, (n,).
    """

    software: Array
    models: Array
    kinds: Array
    of_source: Array
    of_model: Array
    of_kind: Array
    ways: Array
    sizes: Array
    physics: Mask

    @classmethod
    def of(
        cls,
        configs: Sequence[Config],
        c: ConfigTable,
        of_kind: Array | None = None,
        effects: PeakEffects = EFFECTS,
    ) -> PeakKernel:
        """Build the kernel from the configurations' columns.

        of_kind: variances of ln(peak) around predictions from history, (n,), NaN by physics; None: all are.
        """
        models = np.array(list(c.model_key))
        kinds = np.array([workload_kind(key, x.tuning) for key, x in zip(models, configs, strict=True)])
        physics = np.isnan(of_kind) if of_kind is not None else np.ones(len(c), dtype=bool)
        variance = np.where(physics, effects.kind**2, 0.0 if of_kind is None else of_kind)
        sources = np.zeros((len(c), len(effects.terms) + 1))
        of_models = np.zeros((len(c), len(effects.terms)))
        if physics.any():
            sources[physics], of_models[physics] = _of_terms(c.take(physics), effects)
        software = np.array([OURS if is_ours(x) else software_family(x) for x in configs])
        return cls(software, models, kinds, sources, of_models, variance, _ways(c), sizes_of(c), physics)

    def take(self, rows: Array) -> PeakKernel:
        """The chosen rows."""
        return PeakKernel(**{field.name: getattr(self, field.name)[rows] for field in fields(self)})

    @property
    def settings(self) -> Array:
        """A number for each row, equal for equal ways to run on however many GPUs, (n,)."""
        found: Array = (self.ways[:, 1 : 1 + len(WAYS)] @ 2 ** np.arange(len(WAYS))).astype(int)
        return found

    @property
    def variance(self) -> Array:
        """Variance of ln(peak) before any run, shape (n,)."""
        total: Array = (self.of_source**2).sum(axis=1) + (self.of_model**2).sum(axis=1) + self.of_kind
        return total

    def covariance(self, other: PeakKernel) -> Array:
        """Covariance of errors: these n and the other's m configurations, shape (n, m)."""
        same_software = self.software[:, None] == other.software[None, :]
        same_model = self.models[:, None] == other.models[None, :]
        same_kind = self.kinds[:, None] == other.kinds[None, :]
        of_kind = np.sqrt(np.outer(self.of_kind, other.of_kind))
        found: Array = (
            self.of_source @ other.of_source.T * same_software * _near(self.ways, other.ways)
            + self.of_model @ other.of_model.T * same_model
            + of_kind * same_kind * _near(self.sizes, other.sizes)
        )
        return found


def _of_terms(c: ConfigTable, effects: PeakEffects) -> tuple[Array, Array]:
    """Return the effects of the source, all alike last, and of the model."""
    shares = term_shares(c)
    of_source = [effects.terms[name].source * share for name, share in shares.items()]
    of_model = [effects.terms[name].model * share for name, share in shares.items()]
    return np.column_stack([*of_source, np.full(len(c), effects.alike)]), np.column_stack(of_model)


def term_shares(c: ConfigTable) -> dict[str, Array]:
    """Return each term's share of the peak by physics, (n,)."""
    stated = cost_model.memory(c)
    found = {
        "states": stated.weights + stated.gradients + stated.optimizer + stated.adapters,
        "activations": stated.activations,
        "logits": stated.logits,
        "overhead": stated.cached + stated.context + stated.communicators,
        "gathered": stated.gathered + stated.copies,
    }
    return {name: held / stated.total for name, held in found.items()}


def _ways(c: ConfigTable) -> Array:
    flags = [getattr(c, name).astype(float) for name in WAYS]
    mixtures = [APART * (c.experts > 0), APART * (c.expert_parallel > 1)]
    return np.column_stack([np.log2(c.gpus), *flags, *mixtures])


def _near(some: Array, others: Array) -> Array:
    from scipy.spatial.distance import cdist  # own runs alone need it, and it takes a fifth of a second

    found: Array = np.exp(-cdist(some, others, "cityblock") / NEAR)
    return found
