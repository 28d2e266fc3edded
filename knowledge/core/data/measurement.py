"""One measured execution as a value: what importers make and predictors learn from."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from knowledge.core.analytic import cost_model
from knowledge.core.analytic.config_table import columns
from knowledge.core.domain import catalogue, config_space
from knowledge.core.domain.types import Config

OWN = "own"  # the source of what ran here
CPU_PEAK = 1e14  # FLOP/s that no slot of a CPU node reaches; the catalogue's figure is one usual core's


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """A configuration and its outcome. `learn_validity`: failures of this source are published as well.

    tokens_per_second: whole job. peak_memory_fraction: 0 to 1, highest GPU. padded_tokens: mean tokens of a
    sample as processed, where it is not the limit.
    """

    config: Config
    status: str
    source: str
    tokens_per_second: float | None = None
    runtime_s: float | None = None
    startup_s: float | None = None
    peak_memory_fraction: float | None = None
    padded_tokens: float | None = None
    effective_batch_size: int = 0
    origin: str = ""
    learn: bool = True
    learn_validity: bool = True
    flag_reason: str = ""

    @property
    def known(self) -> bool:
        """Does the catalogue have both the model and the GPU?"""
        known_model = catalogue.known_model(self.config.model_name) is not None
        return known_model and catalogue.known_gpu(self.config.gpu_model) is not None

    @property
    def measured(self) -> bool:
        """Is there a throughput to learn from?"""
        return self.learn and self.status == "ok" and bool(self.tokens_per_second) and self.known


FIELDS = tuple(field.name for field in fields(Measurement))


def finished(row: Measurement) -> Measurement:
    """The row with its derived values: the effective batch, and `refused` where a launch rule is broken."""
    effective = row.effective_batch_size or row.config.effective_batch_size
    reason = config_space.refused(row.config)
    if reason and row.status != "ok":
        return replace(row, effective_batch_size=effective, status="refused", flag_reason=reason)
    return replace(row, effective_batch_size=effective)


def flag_implausible(rows: Sequence[Measurement]) -> list[Measurement]:
    """The rows, those that claim more than the hardware's peak kept but not learnt from."""
    found = list(rows)
    rated = [index for index, row in enumerate(rows) if row.measured]
    if not rated:
        return found
    c = columns([rows[index].config for index in rated], None, [rows[index].padded_tokens for index in rated])
    rates = np.array([rows[index].tokens_per_second for index in rated], dtype=float)
    peak = np.where(c.cpu, np.maximum(c.peak, CPU_PEAK), c.peak)
    utilisation = rates * cost_model.flops_per_token(c) / (c.gpus * peak)
    for index, share in zip(rated, utilisation, strict=True):
        if share > 1.0:
            reason = f"above the hardware's peak: {share:.0%} of its FLOP/s"
            found[index] = replace(found[index], learn=False, flag_reason=reason)
    return found


def digests(rows: Sequence[Measurement]) -> list[str]:
    """A digest a row; equal rows of one file are told apart by their order, so that repeats stay repeats."""
    seen: Counter[str] = Counter()
    found = []
    for row in rows:
        values = {name: getattr(row, name) for name in FIELDS}
        text = json.dumps({**values, "config": config_space.known_values(row.config)}, sort_keys=True)
        seen[text] += 1
        found.append(hashlib.sha256(f"{text}{seen[text]}".encode()).hexdigest())
    return found
