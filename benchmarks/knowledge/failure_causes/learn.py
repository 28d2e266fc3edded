"""Fit the weights of `knowledge/reading/failures/likely_cause.py`.

    python -m benchmarks.knowledge.failure_causes.learn [--judge]

errors.csv holds the errors to learn from, each as the features that speak for its cause, not in its words:
errors that libraries of training raise in their code, and first errors of logs, with the library or
repository that they come from. Both were labelled by hand. `--judge` learns from all but a tenth of the logs'
repositories, ten times, and tells how often the cause of the tenth is right by weights alone, without the
rules that go before them; it writes nothing.
"""

from __future__ import annotations

import csv
import sys
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from knowledge.reading.failures.likely_cause import ALWAYS, LEAST, WEIGHTS

ERRORS = Path(__file__).with_name("errors.csv")
FOLDS = 10
OF_LOGS = 3.0  # the weight of a log's error beside a library's: it has happened
STRENGTH = 1.0  # inverse of the penalty on the squares of the weights
SMALLEST = 0.08  # weight that is kept


class LabelledError(NamedTuple):
    cause: str
    source: str
    is_log: bool
    features: Sequence[str]


def labelled_errors() -> list[LabelledError]:
    with ERRORS.open(encoding="utf-8", newline="") as file:
        return [
            LabelledError(row["cause"], row["source"], row["of"] == "log", row["features"].split())
            for row in csv.DictReader(file)
        ]


class Learnt:
    """A regression over errors."""

    def __init__(self, errors: Sequence[LabelledError]) -> None:
        from sklearn.feature_extraction import DictVectorizer  # a second
        from sklearn.linear_model import LogisticRegression

        self._columns = DictVectorizer()
        rows = self._columns.fit_transform([dict.fromkeys(error.features, 1.0) for error in errors])
        weights = [OF_LOGS if error.is_log else 1.0 for error in errors]
        model = LogisticRegression(C=STRENGTH, max_iter=500)
        self._model = model.fit(rows, [error.cause for error in errors], sample_weight=weights)

    def cause(self, features: Sequence[str]) -> str:
        row = self._columns.transform([dict.fromkeys(features, 1.0)])
        probabilities = self._model.predict_proba(row)[0]
        best = int(probabilities.argmax())
        return str(self._model.classes_[best]) if probabilities[best] >= LEAST else ""

    def rows(self) -> list[tuple[str, str, str]]:
        """Features, causes and weights; the smallest are left out."""
        found = [
            (ALWAYS, str(cause), f"{value:.2f}")
            for cause, value in zip(self._model.classes_, self._model.intercept_, strict=True)
        ]
        for cause, weights in zip(self._model.classes_, self._model.coef_, strict=True):
            for name, value in zip(self._columns.get_feature_names_out(), weights, strict=True):
                if abs(value) >= SMALLEST:
                    found.append((str(name), str(cause), f"{value:.2f}"))
        return sorted(found)


def _fold(source: str) -> int:
    return zlib.crc32(source.encode()) % FOLDS


def judged(errors: Sequence[LabelledError]) -> tuple[Counter[str], Counter[str]]:
    """Errors of logs by cause, and the right ones among them; no repository is on both sides."""
    seen: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for fold in range(FOLDS):
        kept = [error for error in errors if error.is_log and _fold(error.source) == fold]
        learnt = Learnt([error for error in errors if error not in kept])
        for error in kept:
            seen[error.cause] += 1
            right[error.cause] += (learnt.cause(error.features) or "code-error") == error.cause
    return seen, right


def main() -> None:
    errors = labelled_errors()
    if "--judge" in sys.argv:
        seen, right = judged(errors)
        print(f"{right.total()} of {seen.total()} right")
        for cause, count in seen.most_common():
            print(f"  {cause:18} {right[cause]} of {count}")
        return
    rows = Learnt(errors).rows()
    with WEIGHTS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("feature", "cause", "weight"))
        writer.writerows(rows)
    print(f"{len(rows)} weights of {len(errors)} errors")


if __name__ == "__main__":
    main()
