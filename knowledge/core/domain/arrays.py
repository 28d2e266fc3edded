"""Types of the arrays that configurations are calculated with."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]  # of floats
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Names:
    """n texts, few of them different: row i is `values[codes[i]]`."""

    values: Sequence[str]
    codes: NDArray[np.intp]

    def __getitem__(self, rows: NDArray[np.intp] | Mask) -> Names:
        """The chosen rows."""
        return replace(self, codes=self.codes[rows])

    def __iter__(self) -> Iterator[str]:
        return (self.values[code] for code in self.codes.tolist())

    def of_row(self, row: int) -> str:
        """One row's text."""
        return self.values[int(self.codes[row])]

    def among(self, texts: Collection[str]) -> Mask:
        """The rows whose text is one of these."""
        return np.array([value in texts for value in self.values], dtype=bool)[self.codes]
