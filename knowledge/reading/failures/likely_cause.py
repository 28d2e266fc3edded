"""The likeliest cause of an error that no expression knows.

The error's name, the words of its message, and the files and the function that raised it each speak for or
against a cause. Their weights are those of a multinomial logistic regression over errors with labels: those
that libraries of training can raise, and those of logs. `benchmarks/knowledge/failure_causes/learn.py` fits
them and writes `cause_weights.csv`.
"""

from __future__ import annotations

import csv
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

WEIGHTS = Path(__file__).with_name("cause_weights.csv")
ALWAYS = "always"  # the feature that every error has
LEAST = 0.5  # of the probability, to be named
_READ = 300  # characters of a message
_MOST_WORDS = 50
_FRAMES = 4  # of the traceback, the innermost ones
_NAME = re.compile(r"^[\w.]{1,120}(?:Error|Exception)\b:?")
_SENTENCE = re.compile(r"\w \w+ \w")
_WORD = re.compile(r"[A-Z]?[a-z]{2,}|[A-Z]{2,}")
_OPTION = re.compile(r"`\w{0,60}_\w{0,60}`|--\w|\b[a-z]{1,40}_[a-z_]{1,40}\b")
_PATH = re.compile(r"/\w{1,80}/|\\\\")


def likely_cause(error: str, message: str, places: Sequence[str]) -> str:
    """Return the cause with at least half of the probability; empty if none has it."""
    sums: defaultdict[str, float] = defaultdict(float)
    weights = _weights()
    for feature in {ALWAYS, *features(error, message, places)}:
        for cause, weight in weights.get(feature, {}).items():
            sums[cause] += weight
    highest = max(sums, key=lambda cause: sums[cause])
    total = sum(math.exp(value - sums[highest]) for value in sums.values())
    return highest if 1 / total >= LEAST else ""


def features(error: str, message: str, places: Sequence[str]) -> set[str]:
    """Return what speaks for a cause.

    places: where the traceback went through, as "folder/file.py function", outermost first.
    """
    return set(_features(error, message[:_READ], places[-_FRAMES:]))


def _features(error: str, message: str, places: Sequence[str]) -> Iterator[str]:
    yield f"error={error}"
    if error != "KeyError" or _SENTENCE.search(message):  # else it is a name of something in the code
        yield from (f"word={word}" for word in _words(_NAME.sub("", message))[:_MOST_WORDS])
    if _OPTION.search(message):
        yield "names-an-option"
    if _PATH.search(message):
        yield "names-a-path"
    for place in places:
        yield from (f"file={word}" for word in _words(place.partition(" ")[0]))
    if places:
        yield from (f"function={word}" for word in _words(places[-1].partition(" ")[2]))


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


@cache
def _weights() -> Mapping[str, Mapping[str, float]]:
    """Weights by feature and cause."""
    found: defaultdict[str, dict[str, float]] = defaultdict(dict)
    with WEIGHTS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found[row["feature"]][row["cause"]] = float(row["weight"])
    return found
