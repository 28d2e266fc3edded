"""The sources that can be imported, by name, and how to tell them apart by their columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from knowledge.core.data.measurement import Measurement
from knowledge.core.data.sources import fma, generic, lfb, published
from knowledge.core.data.sources.table import BadTable, header

SOURCES: dict[str, tuple[Sequence[str], Callable[[str], list[Measurement]]]] = {
    "lfb": (lfb.REQUIRED, lfb.parse),
    "fma": (fma.REQUIRED, fma.parse),
    "mlperf": (published.MLPERF, published.parse_mlperf),
    "litgpt": (published.LITGPT, published.parse_litgpt),
    "csv": (generic.REQUIRED, generic.parse),
    "vectorlm": (published.VECTORLM, published.parse_vectorlm),
}


def parse(text: str, source: str | None = None) -> list[Measurement]:
    """The rows of a CSV text of the named source, or of the one whose columns it has. Raises BadTable."""
    name = source or detect(text)
    if name not in SOURCES:
        raise BadTable([(1, "source", f"{name!r} is unknown; known are {', '.join(SOURCES)}")])
    return SOURCES[name][1](text)


def detect(text: str) -> str:
    """The first source all of whose columns are there; `csv` (our schema) if none fits."""
    names = set(header(text))
    return next((name for name, (required, _) in SOURCES.items() if names >= set(required)), "csv")
