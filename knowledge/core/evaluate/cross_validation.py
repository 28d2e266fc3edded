"""Leave-one-configuration-out errors.

Each run is predicted without itself and the other runs of its configuration.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from knowledge.core.data.measurement import Measurement
from knowledge.core.domain import config_space
from knowledge.core.domain.catalogue import Catalogue
from knowledge.core.evaluate import evaluation
from knowledge.core.predict.exact_matches import Observations
from knowledge.core.predict.predictor import LearnedPredictor

PARTS = 20  # of more configurations several are left out at once, so that the judgement takes seconds


@dataclass(frozen=True, slots=True)
class LeaveOneOutErrors:
    """|ln measured - ln predicted| of the rate, one value for each run.

    Both tuples have the same order of runs.

    before: predicted from none of the runs.
    after: predicted from all but those left out with the run.
    """

    before: tuple[float, ...]
    after: tuple[float, ...]


def leave_one_out_errors(
    predictor: LearnedPredictor, others: Sequence[Measurement], runs: Sequence[Measurement]
) -> LeaveOneOutErrors:
    """Return the leave-one-configuration-out errors of measured runs.

    All runs with the configuration of the predicted run are left out, among `others` as well: a
    repeat answers with its own measurement and would be no prediction.

    predictor: one that did not learn from the runs.
    others: own runs that were known anyway.
    """
    known, names = (_names(rows, predictor.catalogue) for rows in (others, runs))
    before: list[float] = []
    after: list[float] = []
    for part in fold_names(names):
        mine = [row for row, name in zip(runs, names, strict=True) if name in part]
        theirs = [row for row, name in zip(others, known, strict=True) if name not in part]
        rest = [row for row, name in zip(runs, names, strict=True) if name not in part]
        before += _errors(predictor, theirs, mine)
        after += _errors(predictor, [*theirs, *rest], mine)
    return LeaveOneOutErrors(tuple(before), tuple(after))


def _names(rows: Sequence[Measurement], catalogue: Catalogue) -> list[str]:
    return [config_space.config_hash(catalogue.canonical(row.config)) for row in rows]


def fold_names(names: Sequence[str]) -> Iterator[set[str]]:
    """Divide the different names into `PARTS` parts or fewer.

    Names that follow each other are kept apart.
    """
    different = list(dict.fromkeys(names))
    for first in range(min(PARTS, len(different))):
        yield set(different[first::PARTS])


def _errors(
    predictor: LearnedPredictor, own: Sequence[Measurement], rows: Sequence[Measurement]
) -> list[float]:
    observations = Observations.of(own, predictor.catalogue)
    return evaluation.log_errors(replace(predictor, observations=observations), rows)
