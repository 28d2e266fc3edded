"""The step from which a training had no number for its loss or gradient."""

from __future__ import annotations

import re
from collections.abc import Sequence

from knowledge.reading.failures.troubled_lines import LONGEST, LogLine

_FIGURE = re.compile(
    r"(?<![\w-])(?:(?:lm |(?!eval|val|test)\w{1,30}[_/])?loss|grad[_ ]norm)['\"]?\s?(?:[:=]|is)?\s?['\"]?"
    r"(nan|[-+]?inf|[-+]?\d)",
    re.I,
)


def first_not_finite(lines: Sequence[LogLine]) -> LogLine | None:
    """Return the first line of those without a number with which the log ends.

    None where the last loss is a number: a training may pass over single ones.
    """
    first = None
    for line in reversed(lines):
        figures = [found[1].lower() for found in _FIGURE.finditer(line.text[:LONGEST])]
        if figures and all(figure[-1:].isdigit() for figure in figures):
            break
        first = line if figures else first
    return first
