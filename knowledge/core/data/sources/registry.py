"""The sources that can be imported, by name.

They are told apart by their columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from knowledge.core.data.measurement import Measurement
from knowledge.core.data.sources import fma, generic, lfb, litgpt, published
from knowledge.core.data.sources.table import BadTable, header
from knowledge.core.domain.catalogue import Catalogue

SOURCES: dict[str, tuple[Sequence[str], Callable[[str, Catalogue], list[Measurement]]]] = {
    "lfb": (lfb.REQUIRED, lfb.parse),
    "fma": (fma.REQUIRED, fma.parse),
    "mlperf": (published.MLPERF, published.parse_mlperf),
    "litgpt": (litgpt.REQUIRED, litgpt.parse),
    "csv": (generic.REQUIRED, generic.parse),
    "vectorlm": (published.VECTORLM, published.parse_vectorlm),
}


def parse(text: str, catalogue: Catalogue, source: str | None = None) -> list[Measurement]:
    """Parse the rows of a CSV text of the named source.

    Without a name, the source is detected by its columns. Raises BadTable.
    """
    name = source or detect(text)
    if name not in SOURCES:
        raise BadTable([(1, "source", f"{name!r} is unknown; known are {', '.join(SOURCES)}")])
    return SOURCES[name][1](text, catalogue)


def detect(text: str) -> str:
    """Return the first source all of whose columns are there.

    If none fits, this is `csv` (our schema).
    """
    names = set(header(text))
    return next((name for name, (required, _) in SOURCES.items() if names >= set(required)), "csv")
