"""CoTune: choosing where and how a job runs, one best configuration per bundle.

A bundle is (GPU model, nodes, GPUs). Source: Jansen et al., "Efficient Cluster Scheduling for
Fine-tuning LLMs Using Historical Configuration Data"; the search is our own
(docs/knowledge.md). Only values that bind at dispatch are free here, and of those only the ones
that the user left open.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from knowledge.core.analytic import cost_model
from knowledge.core.analytic.config_table import ConfigTable
from knowledge.core.domain import config_space
from knowledge.core.domain.arrays import Array, Mask
from knowledge.core.domain.types import Choice, Config, Goal, Option, Prediction, all_priced
from knowledge.core.predict.base import MIN_P_VALID, BasePredictor, PredictionBatch, prediction
from knowledge.core.recommend import defaults, duration
from knowledge.core.recommend.candidates import Candidates, Rows, best_of_each
from knowledge.core.recommend.link_levels import rates_by_level
from knowledge.core.recommend.search_space import SearchSpace
from knowledge.core.recommend.submit_defaults import (
    Request,
    batch_choices,
    choose_submit_values,
    four_bits_instead,
)

RUNS = 0.5  # the probability from which a configuration probably runs
ROOMY = 0.95  # fuller GPUs still run, but often several times slower: the allocator thrashes
SAME_RATE = 0.97  # rates this near to the best count as equal: take the one that needs less memory
HOPELESS = 0.05  # below this probability nothing is offered at all
RISKY_OPTIONS = 5
SHORTLIST = 3000  # candidates that the estimators score in a fifth of a second
LEVELS_A_DOUBLING = 2
LEVELS = 1000  # more than any memory in bytes has


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Options by one predictor, for requests on one inventory.

    Scored options are kept.
    """

    predictor: BasePredictor
    startups: duration.Startups
    space: SearchSpace = field(default_factory=SearchSpace)
    _found: dict[Hashable, tuple[Option, ...]] = field(default_factory=dict)

    def choose(self, request: Request) -> tuple[dict[str, Choice], tuple[Option, ...]]:
        """Return all choices and their options.

        They use 4 bits where the tuning is open and LoRA is not likely to fit.
        """
        choices, found = self._choose_batch(request, choose_submit_values(request))
        smaller = four_bits_instead(request, choices["tuning"], found)
        if smaller is None:
            return choices, found
        tried = self._choose_batch(request, choose_submit_values(request, smaller))
        likely = any(option.p_valid >= MIN_P_VALID for option in tried[1])
        return tried if likely or (tried[1] and not found) else (choices, found)

    def _choose_batch(
        self, request: Request, choices: Mapping[str, Choice]
    ) -> tuple[dict[str, Choice], tuple[Option, ...]]:
        """The choices with the effective batch bound, and its options.

        Of several batches the one nearest to the default wins: what is learnt is not decided by speed.
        """
        tried = []
        for batch in batch_choices(request, choices["effective_batch_size"]):
            whole = {**choices, "effective_batch_size": batch}
            tried.append((whole, self.options(request, values(whole))))
        return next((entry for entry in tried if entry[1]), tried[0])

    def options(self, request: Request, bound: Mapping[str, Any]) -> tuple[Option, ...]:
        """The best configuration of every bundle, best bundle first by the balanced goal.

        Only configurations that run with a probability of 0.9; if there is none, the five likeliest. Stated
        defaults where nothing can be predicted.
        """
        key = request.at_dispatch(), tuple(sorted(bound.items()))
        if key not in self._found:
            self._found[key] = self._options(request, bound)
        return self._found[key]

    def _options(self, request: Request, bound: Mapping[str, Any]) -> tuple[Option, ...]:
        if request.model is None:
            return defaults.default_options(request, bound)
        # Nothing is known of GPUs that the catalogue lacks: beside a prediction they seem to take no time.
        return self.predicted(request, bound) or defaults.default_options(request.of_unknown_gpus(), bound)

    def predicted(
        self, request: Request, bound: Mapping[str, Any], less_memory_than: float = np.inf
    ) -> tuple[Option, ...]:
        """Return the options that are predicted to need less memory.

        The limit is in bytes of one GPU. Stated defaults are not included.
        """
        everything = self.space.candidates(request, bound)
        if not len(everything) or request.model is None:
            return ()
        c = everything.columns(request.catalogue, request.data)
        found, c = shortlisted(everything, c, self.predictor)
        configs = found.configs()
        scores = self.predictor.score(configs, c)
        room = scores.memory < less_memory_than
        chosen = per_bundle(found, c, scores, room & (scores.p_valid >= MIN_P_VALID))
        if not chosen:
            chosen = likeliest(found, scores, room & (scores.p_valid >= HOPELESS))[:RISKY_OPTIONS]
        rows = np.array(chosen, dtype=np.intp)
        measured = [found.pool(row).links for row in chosen]
        by_level = rates_by_level(
            self.predictor, [configs[row] for row in chosen], c.take(rows), scores.rate[rows], measured
        )
        made = [
            duration.option(
                configs[row],
                within_gpu(prediction(scores, row), c.memory[row]),
                by_level=rates,
                model=request.model,
                data=request.data,
                pool=found.pool(row),
                startup=duration.startup(request.model, found.pool(row).gpu_model, self.startups),
                epochs=bound.get("epochs"),
                max_steps=bound.get("max_steps"),
            )
            for row, rates in zip(chosen, by_level, strict=True)
        ]
        priced = all_priced(made)
        return tuple(sorted(_distinct(made), key=lambda option: rank(option, Goal.BALANCED, priced=priced)))


def within_gpu(predicted: Prediction, gpu_bytes: float) -> Prediction:
    """Tell the peak of what probably runs as at most what its GPU has.

    Where memory is short, the allocator gives blocks back that a step's copies would take beside them.
    """
    if predicted.p_valid < RUNS:
        return predicted
    return replace(predicted, peak_memory_bytes=predicted.peak_memory_bytes.at_most(gpu_bytes))


def values(choices: Mapping[str, Choice]) -> dict[str, Any]:
    """The chosen values without those that were left out."""
    return {name: choice.value for name, choice in choices.items() if choice.value is not None}


def shortlisted(
    found: Candidates, c: ConfigTable, predictor: BasePredictor
) -> tuple[Candidates, ConfigTable]:
    """Return the candidates worth scoring, with their columns.

    These are all of them, unless there are very many. Then they are those that fit by the memory
    prior, and of each bundle and level of memory the fastest by physics: the estimators decide
    which level is the last one that runs.
    """
    if len(found) <= SHORTLIST:
        return found, c
    rows = fitting(c)
    if len(rows) > SHORTLIST:
        rows = rows[_fastest_of_each_level(found.take(rows), c.take(rows), predictor)]
    return found.take(rows), c.take(rows)


def fitting(c: ConfigTable) -> Rows:
    """The rows that fit by the memory prior; if none does, those that miss by least."""
    share = cost_model.fits(c)
    rows = np.flatnonzero(share >= 1)
    return rows if len(rows) else np.argsort(-share, kind="stable")[:SHORTLIST]


def _fastest_of_each_level(found: Candidates, c: ConfigTable, predictor: BasePredictor) -> Mask:
    level = np.floor(LEVELS_A_DOUBLING * np.log2(cost_model.memory(c).total)).astype(np.intp)
    _, groups = np.unique(found.bundle() * LEVELS + level, return_inverse=True)
    share = max(1, SHORTLIST // (int(groups.max()) + 1))
    return best_of_each(groups, predictor.physics(c) / c.padded, share)


def per_bundle(found: Candidates, c: ConfigTable, scores: PredictionBatch, allowed: Mask) -> list[int]:
    """Return the row to take of each bundle.

    Within 3 % of the bundle's most samples per second, it is the row with the smallest footprint:
    the smallest batch that loses no speed is safer than the biggest that fits. Padding is no
    progress: a larger batch may process more tokens and yet take longer. Rows that leave some room
    are preferred where a bundle has any.
    """
    roomy = scores.memory <= ROOMY * c.memory
    speed = scores.rate / c.padded
    return [
        _least_memory(found, scores.memory, speed, [row for row in some if roomy[row]] or some)
        for some in _of_each_bundle(found, allowed)
    ]


def likeliest(found: Candidates, scores: PredictionBatch, allowed: Mask) -> list[int]:
    """Return the row of each bundle that is most likely to run.

    The likeliest bundle comes first; of equally likely rows, the smallest is taken.
    """

    def risk(row: int) -> tuple[float, float, float, str]:
        figures = -scores.p_valid[row], scores.memory[row], -scores.rate[row]
        return (*figures, config_space.config_hash(found.config(row)))

    return sorted((min(some, key=risk) for some in _of_each_bundle(found, allowed)), key=risk)


def _of_each_bundle(found: Candidates, allowed: Mask) -> Iterable[list[int]]:
    bundle = found.bundle()
    rows: dict[int, list[int]] = {}
    for row in np.flatnonzero(allowed):
        rows.setdefault(int(bundle[row]), []).append(int(row))
    return rows.values()


def _least_memory(found: Candidates, memory: Array, speed: Array, rows: list[int]) -> int:
    best = max(speed[row] for row in rows)
    near = [row for row in rows if speed[row] >= SAME_RATE * best]
    least = min((memory[row], -speed[row]) for row in near)
    ties = [row for row in near if (memory[row], -speed[row]) == least]
    return min(ties, key=lambda row: config_space.config_hash(found.config(row))) if ties[1:] else ties[0]


def _distinct(options: Iterable[Option]) -> list[Option]:
    """Leave out options that ask for more memory than they need to.

    Another one with the same settings and price asks for less. That one may run on the larger GPUs as well.
    """
    found: dict[tuple[Config, float | None], Option] = {}
    for option in options:
        settings = option.config, option.price_per_gpu_hour
        other = found.get(settings)
        if other is None or (option.gpu_memory_bytes or 0.0) < (other.gpu_memory_bytes or 0.0):
            found[settings] = option
    return list(found.values())


def rank(option: Option, goal: Goal, *, priced: bool) -> tuple[float, int, float, float, str, float]:
    """Return the sort key of an option.

    It orders by the goal, then fewer GPUs, less cost, higher p_valid, the configuration's hash, less memory.
    """
    return (
        option.score(goal, priced=priced),
        option.gpus,
        option.cost.value,
        -option.p_valid,
        config_space.config_hash(option.config),
        option.gpu_memory_bytes or 0.0,
    )
