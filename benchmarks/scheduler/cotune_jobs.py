"""CoTune's experiment as data: kinds of fine-tuning jobs with measured choices.

A kind is (model, tuning, tokens per sample, software, protocol) of LLMFineTuningBench on
A100-SXM4-80GB; its choices are (GPUs, nodes, per-device batch) with their measured rate. A
predictor judges a kind without ever having seen a row of its (model, tuning, tokens per
sample); the exact level knows the medians of the same choice under other software. So the
knowledge of an arm is never the truth by which its jobs run.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

import numpy as np

from knowledge.catalogue.shipped_catalogue import shipped_catalogue
from knowledge.core.analytic.config_table import columns
from knowledge.core.data import splits
from knowledge.core.data.measurement import Measurement
from knowledge.core.domain.types import Config
from knowledge.core.evaluate import evaluation
from knowledge.core.predict.base import MIN_P_VALID

CATALOGUE = shipped_catalogue()

GPU, MOST_GPUS = "A100-SXM4-80GB", 32
LEAST_BUNDLES = 3  # a kind must have run on this many numbers of GPUs, else there is nothing to choose
REPEATS = 2  # measurements that make a configuration exactly known
DEFAULT_GPUS, DEFAULT_BATCH = 8, 4  # of arm B1
FOLDS = 3


class Shape(NamedTuple):
    """The choice for a job."""

    gpus: int
    nodes: int
    batch: int  # per device


@dataclass(slots=True)
class Choice:
    """One configuration of a kind. Rates in tokens/s, 0 where it does not run."""

    config: Config
    runs: int  # how often it was submitted, successfully or not
    rate: float  # measured: the truth
    exact: float | None = None  # measured under other software; None: not often enough
    predicted: float = 0.0
    p_valid: float = 0.0


@dataclass(slots=True)
class Kind:
    name: str
    base: str  # model, tuning, tokens per sample
    choices: dict[Shape, Choice] = field(default_factory=dict)

    @property
    def running(self) -> dict[Shape, Choice]:
        return {shape: choice for shape, choice in self.choices.items() if choice.rate > 0}

    def submitted(self, rng: random.Random) -> Shape:
        """The configurations that its users submitted, as often as they did."""
        shapes = list(self.choices)
        return rng.choices(shapes, [self.choices[shape].runs for shape in shapes])[0]

    def default(self, gpus: int = DEFAULT_GPUS) -> Shape:
        """The measured choice nearest to the stated default."""
        return self._nearest(list(self.choices), Shape(gpus, 1, DEFAULT_BATCH))

    def at_batch(self, batch: int) -> Kind:
        """The kind with those choices alone whose effective batch this is."""
        same = {shape: found for shape, found in self.choices.items() if shape.gpus * shape.batch == batch}
        return Kind(self.name, self.base, same)

    def fallback(self) -> Shape:
        """The choice with which a failed job is resubmitted.

        Of the choices that run, it is the nearest to the stated default.
        """
        return self._nearest(list(self.running), Shape(DEFAULT_GPUS, 1, DEFAULT_BATCH))

    @property
    def reference_rate(self) -> float:
        """Tokens/s of the fallback."""
        return self.choices[self.fallback()].rate

    def likely(self, wanted: Shape) -> Shape:
        """The choice nearest to the wanted one that is predicted to run."""
        valid = [shape for shape, choice in self.choices.items() if choice.p_valid >= MIN_P_VALID]
        return self._nearest(valid or list(self.choices), wanted)

    def _nearest(self, shapes: Sequence[Shape], to: Shape) -> Shape:
        def distance(shape: Shape) -> tuple[float, Shape]:
            return abs(math.log2(shape.gpus / to.gpus)) + abs(math.log2(shape.batch / to.batch)), shape

        return min(shapes, key=distance)


def base_of(row: Measurement) -> str:
    """Model, tuning and sample length of a row."""
    return f"{row.config.model_name}|{row.config.tuning}|{row.config.tokens_per_sample}"


def kinds_of(
    rows: Sequence[Measurement],
    gpu: str = GPU,
    *,
    unseen: Callable[[Measurement], str] = base_of,
    least_bundles: int = LEAST_BUNDLES,
) -> list[Kind]:
    """Every kind that leaves a choice, with all that the arms know about it.

    unseen: the predictor of a kind never saw a row of which this is the same as of its own.
    """
    usable = [
        row
        for row in rows
        if row.learn and row.status != "refused" and row.config.gpu_model == gpu
        and row.config.number_gpus <= MOST_GPUS and CATALOGUE.knows(row.config)
    ]  # fmt: skip
    by_kind: dict[str, dict[Shape, list[Measurement]]] = defaultdict(lambda: defaultdict(list))
    by_base: dict[str, dict[Shape, list[Measurement]]] = defaultdict(lambda: defaultdict(list))
    for row in usable:
        by_kind[_kind(row)][_shape(row)].append(row)
        by_base[base_of(row)][_shape(row)].append(row)
    kinds = [_measured(name, table, by_base) for name, table in by_kind.items()]
    kinds = [kind for kind in kinds if len({shape.gpus for shape in kind.running}) >= least_bundles]
    _predict(kinds, usable, unseen)
    return sorted(kinds, key=lambda kind: kind.name)


def best(kind: Kind, rate: Callable[[Choice], float]) -> dict[tuple[int, int], Shape]:
    """The choice of the highest rate on each (GPUs, nodes) that has one above 0."""
    found: dict[tuple[int, int], Shape] = {}
    for shape, choice in kind.choices.items():
        known = found.get((shape.gpus, shape.nodes))
        if rate(choice) > 0 and (known is None or rate(choice) > rate(kind.choices[known])):
            found[shape.gpus, shape.nodes] = shape
    return found


def _measured(
    name: str, table: dict[Shape, list[Measurement]], by_base: dict[str, dict[Shape, list[Measurement]]]
) -> Kind:
    base = base_of(next(iter(table.values()))[0])
    kind = Kind(name, base)
    for shape, rows in table.items():
        others = [row for row in by_base[base][shape] if _kind(row) != name]
        exact = _rate(others) if len(others) >= REPEATS else None
        kind.choices[shape] = Choice(rows[0].config, len(rows), _rate(rows), exact)
    return kind


def _predict(kinds: Sequence[Kind], rows: Sequence[Measurement], group: Callable[[Measurement], str]) -> None:
    """Predict each kind's choices without having seen its group."""
    groups = [group(row) for row in rows]
    for train, test in splits.grouped(groups, min(FOLDS, len(set(groups)))):
        unseen = {base_of(rows[row]) for row in test}
        predictor = evaluation.predictor([rows[row] for row in train], CATALOGUE)
        for kind in (kind for kind in kinds if kind.base in unseen):
            configs = [choice.config for choice in kind.choices.values()]
            scores = predictor.score(configs, columns(configs, CATALOGUE))
            for number, choice in enumerate(kind.choices.values()):
                choice.predicted, choice.p_valid = float(scores.rate[number]), float(scores.p_valid[number])


def _rate(rows: Sequence[Measurement]) -> float:
    """The median rate of repeats; 0 if most of them did not run."""
    return float(np.median([row.tokens_per_second or 0.0 for row in rows]))


def prediction_error(kinds: Sequence[Kind]) -> float:
    """Median absolute error of the predicted rates, as a share."""
    return median(
        abs(choice.predicted / choice.rate - 1.0) for kind in kinds for choice in kind.running.values()
    )


def _shape(row: Measurement) -> Shape:
    return Shape(row.config.number_gpus, row.config.number_nodes, row.config.per_device_batch_size)


def _kind(row: Measurement) -> str:
    return f"{base_of(row)}|{row.config.software}|{row.config.run_protocol}"
