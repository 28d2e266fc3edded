"""Types of the arrays that configurations are calculated with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]  # of floats
Mask = NDArray[np.bool_]
