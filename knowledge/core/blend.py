"""Own measurements on top of predictions: exact repeats, and a kind's runs blended by precision."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from knowledge.core import space
from knowledge.core.columns import Array
from knowledge.core.rows import Row
from knowledge.core.types import Config

SIGMA = 0.10  # standard deviation of ln θ between repeats of a configuration
APART = 0.15  # what each doubling of a size or differing setting adds to it
MEMORY_SIGMA = 0.05
ENOUGH_REPEATS = 2
RECENT = 50  # own runs of a kind that are looked at


def precision_mean(prior: float, tau: float, observed: Sequence[float], sigma: float) -> tuple[float, float]:
    """Mean and standard deviation in log space of a prior (sd τ) and observations (sd σ each).

    prior and observed in the same unit, tokens/s say; the mean comes back in that unit.
    """
    logs = np.log(np.asarray(observed, dtype=float))
    sigmas = np.full(len(logs), sigma)
    mean, sd = _posterior(np.array([math.log(prior)]), np.array([tau]), logs[None, :], sigmas[None, :])
    return math.exp(float(mean[0])), float(sd[0])


def _posterior(prior: Array, tau: Array, logs: Array, sigmas: Array) -> tuple[Array, Array]:
    """Precision-weighted means. prior, tau: shape (n,). logs, sigmas: (n, m) or (1, m)."""
    weights = 1 / sigmas**2
    total = 1 / tau**2 + weights.sum(axis=1)
    return (prior / tau**2 + (weights * logs).sum(axis=1)) / total, np.sqrt(1 / total)


@dataclass(frozen=True, slots=True)
class Repeat:
    """What repeats of one configuration showed."""

    rate: float | None
    memory_fraction: float | None
    runs: int
    out_of_memory: int


def _kind(config: Config) -> tuple[str, str, str]:
    return config.model_name, config.method, config.gpu_model


def _repeat_key(config: Config, padded: float | None) -> str:
    """Equal configurations on data padded to about the same length."""
    length = padded or config.tokens_per_sample
    return f"{space.config_hash(config)}:{round(4 * math.log2(max(1.0, length)))}"


@dataclass(frozen=True)
class Observations:
    """Own executions, ready to be looked up."""

    repeats: Mapping[str, Repeat]
    kinds: Mapping[tuple[str, str, str], tuple[Row, ...]]

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Observations:
        """From own rows, oldest first."""
        same: dict[str, list[Row]] = {}
        kinds: dict[tuple[str, str, str], list[Row]] = {}
        for row in rows:
            same.setdefault(_repeat_key(row.config, row.padded_tokens), []).append(row)
            if row.measured:
                kinds.setdefault(_kind(row.config), []).append(row)
        return cls(
            {key: _repeat(found) for key, found in same.items()},
            {kind: tuple(found[-RECENT:]) for kind, found in kinds.items()},
        )

    def repeat(self, config: Config, padded: float | None) -> Repeat | None:
        """What repeats of this configuration showed, if there were any."""
        if not self.repeats:
            return None
        return self.repeats.get(_repeat_key(space.canonical(config), padded))

    def of_kind(self, config: Config) -> tuple[Row, ...]:
        """Measured runs of the same model, method and GPU model."""
        return self.kinds.get(_kind(space.canonical(config)), ())


def _repeat(rows: Sequence[Row]) -> Repeat:
    rates = [row.tokens_per_second for row in rows if row.measured and row.tokens_per_second]
    memory = [row.peak_memory_fraction for row in rows if row.peak_memory_fraction and row.status == "ok"]
    return Repeat(
        rate=median(rates) if len(rates) >= ENOUGH_REPEATS else None,
        memory_fraction=max(memory) if memory else None,
        runs=sum(row.status == "ok" for row in rows),
        out_of_memory=sum(row.status == "oom" for row in rows),
    )


def shift(
    observed: Array, base_there: Array, here: Array, there: Array, tau: Array, sigma: float = SIGMA
) -> tuple[Array, Array]:
    """How far own runs move ln(prediction), and the sd that is left.

    observed, base_there: shape (m,), measured and predicted for the own runs. here: (n, k) and there: (m, k),
    coordinates in doublings. tau: (n,). The further apart, the less a run says.
    """
    apart = np.abs(here[:, None, :] - there[None, :, :]).sum(axis=2)
    moved = np.broadcast_to(np.log(observed / base_there), apart.shape)
    return _posterior(np.zeros(len(here)), tau, moved, sigma + APART * apart)
