"""Leave-one-configuration-out errors: each run is predicted without itself and its likes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from knowledge.core.data.measurement import Measurement
from knowledge.core.domain import config_space
from knowledge.core.evaluate import evaluation
from knowledge.core.predict.exact_matches import Observations
from knowledge.core.predict.predictor import LearnedPredictor

PARTS = 20  # of more configurations several are left out at once, so that the judgement takes seconds


@dataclass(frozen=True, slots=True)
class LeaveOneOutErrors:
    """|ln measured - ln predicted| of the rate, one of each run; both in the same order of runs.

    before: foretold from none of them. after: from all but those left out with it.
    """

    before: tuple[float, ...]
    after: tuple[float, ...]


def leave_one_out_errors(
    predictor: LearnedPredictor, others: Sequence[Measurement], runs: Sequence[Measurement]
) -> LeaveOneOutErrors:
    """Leave-one-configuration-out errors of measured runs, with `others` as own runs that were known anyway.

    predictor: one that did not learn from the runs. Whatever has the configuration of a run that is foretold
    is left out, among `others` as well: repeats answer with what they measured and would be no forecast.
    """
    known, names = [_name(row) for row in others], [_name(row) for row in runs]
    before: list[float] = []
    after: list[float] = []
    for part in _parts(names):
        mine = [row for row, name in zip(runs, names, strict=True) if name in part]
        theirs = [row for row, name in zip(others, known, strict=True) if name not in part]
        rest = [row for row, name in zip(runs, names, strict=True) if name not in part]
        before += _errors(predictor, theirs, mine)
        after += _errors(predictor, [*theirs, *rest], mine)
    return LeaveOneOutErrors(tuple(before), tuple(after))


def _name(row: Measurement) -> str:
    return config_space.config_hash(row.config)


def _parts(names: Sequence[str]) -> Iterator[set[str]]:
    """The different names in `PARTS` parts or fewer, those that follow each other apart."""
    different = list(dict.fromkeys(names))
    for first in range(min(PARTS, len(different))):
        yield set(different[first::PARTS])


def _errors(
    predictor: LearnedPredictor, own: Sequence[Measurement], rows: Sequence[Measurement]
) -> list[float]:
    return evaluation.log_errors(replace(predictor, observations=Observations.of(own)), rows)
