"""How alike jobs are, and what those most alike say of a duration.

Rare properties count more than common ones: idf = ln((1 + N) / (1 + df)) + 1, and the similarity is the
cosine. Numbers are compared by their order of magnitude.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log2, log10
from typing import Any

from trainer.strict_json import is_number

NAMED = ("base_model", "tuning", "dataset", "optimizer", "precision")
DOUBLINGS = ("tokens_per_sample", "effective_batch_size", "number_gpus")
HALF_DECADES = ("learning_rate",)
# Told where they differ, and no part of how alike jobs are, which is what they train: how much there is to
# do, and where. Durations of jobs that differ in them say nothing of each other.
WORK, PLACE = ("rows", "epochs", "steps"), ("gpu_model",)
SIMILAR = 0.5  # from here on a job is offered
NEIGHBOUR, MOST_SIMILAR, FEWEST_NEIGHBOURS = 0.8, 5, 2
Facts = Mapping[str, Any]


def tokens(facts: Facts) -> list[str]:
    """The properties of a job as words, numbers by powers of two or roots of ten."""
    named = [f"{name}={facts[name]}".lower() for name in NAMED if facts.get(name)]
    sizes = [f"{name}~{int(log2(facts[name]))}" for name in DOUBLINGS if _positive(facts.get(name))]
    rates = [f"{name}~{round(2 * log10(facts[name]))}" for name in HALF_DECADES if _positive(facts.get(name))]
    return [*named, *sizes, *rates]


def _positive(value: object) -> bool:
    return is_number(value) and value > 0


def similarities(jobs: Sequence[Facts], past: Sequence[Facts]) -> list[list[float]]:
    """The similarity of each job to each past one, 0 to 1."""
    nothing = [[0.0] * len(past)] * len(jobs)
    if not past or not jobs:
        return nothing
    from sklearn.feature_extraction.text import TfidfVectorizer  # a second

    vectorizer = TfidfVectorizer(analyzer=tokens)
    try:
        rows = vectorizer.fit_transform(past)
    except ValueError:  # none of them has any property
        return nothing
    found: list[list[float]] = (vectorizer.transform(jobs) @ rows.T).toarray().tolist()
    return found


def differences(job: Facts, other: Facts) -> list[tuple[str, Any, Any]]:
    """The properties that both state and that differ, with the other's value last."""
    return [
        (name, job[name], other[name])
        for name in (*NAMED, *PLACE, *WORK, *DOUBLINGS, *HALF_DECADES)
        if job.get(name) and other.get(name) and not _same(job[name], other[name])
    ]


def _same(here: object, there: object) -> bool:
    if is_number(here) and is_number(there):
        return here == there
    return str(here).lower() == str(there).lower()


def weighted_median(values: Sequence[tuple[float, float]]) -> float:
    """The smallest value up to which half of all weight lies.

    values: pairs of value and weight.
    """
    half, sum_so_far = sum(weight for _, weight in values) / 2, 0.0
    for value, weight in sorted(values):
        sum_so_far += weight
        if sum_so_far >= half:
            return value
    raise ValueError("there is no value")


def duration_by_neighbours(
    predicted_s: float, neighbours: Sequence[tuple[float, float, float]]
) -> float | None:
    """Return the duration of a job by those like it, in s; None with fewer than two.

    neighbours: (duration, predicted duration, similarity) of jobs that succeeded. The predictor's errors for
    them correct its prediction for this job.
    """
    ratios = [
        (took / predicted, similarity)
        for took, predicted, similarity in neighbours
        if similarity >= NEIGHBOUR and predicted > 0
    ]
    return predicted_s * weighted_median(ratios) if len(ratios) >= FEWEST_NEIGHBOURS else None
