"""One measured execution as a value.

Importers make it and predictors learn from it.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from knowledge.core.analytic import cost_model
from knowledge.core.analytic.config_table import ConfigTable, columns
from knowledge.core.domain import config_space
from knowledge.core.domain.catalogue import Catalogue
from knowledge.core.domain.types import Config

OWN = "own"  # the source of what ran here
FROM_LOG = "log"  # the source of what the log of a run elsewhere says
CPU_PEAK = 1e14  # FLOP/s that no slot of a CPU node reaches; the catalogue's figure is one usual core's


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """A configuration and its outcome.

    learn_validity: failures of this source are published as well.
    tokens_per_second: of the whole job.
    peak_memory_fraction: 0 to 1, of the GPU with the highest.
    gpu_memory_bytes: memory that the peak is a share of; None: what the catalogue has.
    padded_tokens: mean tokens of a sample as processed, where it is not the limit.
    """

    config: Config
    status: str
    source: str
    tokens_per_second: float | None = None
    runtime_s: float | None = None
    startup_s: float | None = None
    peak_memory_fraction: float | None = None
    gpu_memory_bytes: float | None = None
    padded_tokens: float | None = None
    effective_batch_size: int = 0
    origin: str = ""
    learn: bool = True
    learn_validity: bool = True
    flag_reason: str = ""

    @property
    def measured(self) -> bool:
        """Is there a throughput to learn from, once model and GPU are known?"""
        return self.learn and self.status == "ok" and bool(self.tokens_per_second)

    @property
    def has_peak(self) -> bool:
        """Is there a peak of memory to learn from, once model and GPU are known?"""
        return self.learn and self.status == "ok" and bool(self.peak_memory_fraction)


# Rows are told apart by these, not by the memory of the GPU that ran them.
FIELDS = tuple(field.name for field in fields(Measurement) if field.name != "gpu_memory_bytes")


def known_rows(rows: Sequence[Measurement], catalogue: Catalogue) -> list[Measurement]:
    """Keep the rows whose model and GPU the catalogue has.

    There is nothing to learn from the others.
    """
    return [row for row in rows if catalogue.knows(row.config)]


def table(rows: Sequence[Measurement], catalogue: Catalogue) -> ConfigTable:
    """The rows as columns, each on a GPU with the memory of the one that ran it.

    Nodes differ: a driver keeps some of a GPU, and a slot of CPUs has its share of a machine.
    """
    c = columns([row.config for row in rows], catalogue, [row.padded_tokens for row in rows])
    held = np.array([row.gpu_memory_bytes or np.nan for row in rows], dtype=float)
    return replace(c, memory=np.where(np.isnan(held), c.memory, held))


def finished(row: Measurement, catalogue: Catalogue) -> Measurement:
    """Return the row with its derived values.

    They are the effective batch, and the status `refused` where a launch rule is broken.
    """
    effective = row.effective_batch_size or row.config.effective_batch_size
    reason = config_space.refused(row.config, catalogue)
    if reason and row.status != "ok":
        return replace(row, effective_batch_size=effective, status="refused", flag_reason=reason)
    return replace(row, effective_batch_size=effective)


def flag_implausible(rows: Sequence[Measurement], catalogue: Catalogue) -> list[Measurement]:
    """Return the rows, with implausible ones marked as not to be learnt from.

    A row is implausible if it claims more than the hardware's peak; it is kept.
    """
    found = list(rows)
    rated = [index for index, row in enumerate(rows) if row.measured and catalogue.knows(row.config)]
    if not rated:
        return found
    c = table([rows[index] for index in rated], catalogue)
    rates = np.array([rows[index].tokens_per_second for index in rated], dtype=float)
    peak = np.where(c.cpu, np.maximum(c.peak, CPU_PEAK), c.peak)
    utilisation = rates * cost_model.flops_per_token(c) / (c.gpus * peak)
    for index, share in zip(rated, utilisation, strict=True):
        if share > 1.0:
            reason = f"above the hardware's peak: {share:.0%} of its FLOP/s"
            found[index] = replace(found[index], learn=False, flag_reason=reason)
    return found


def digests(rows: Sequence[Measurement]) -> list[str]:
    """Return one digest per row.

    Equal rows of one file are told apart by their order, so that repeats stay repeats.
    """
    seen: Counter[str] = Counter()
    found = []
    for row in rows:
        values = {name: getattr(row, name) for name in FIELDS}
        known = {config_space.column_of(k): v for k, v in config_space.known_values(row.config).items()}
        text = json.dumps({**values, "config": known}, sort_keys=True)
        seen[text] += 1
        found.append(hashlib.sha256(f"{text}{seen[text]}".encode()).hexdigest())
    return found
