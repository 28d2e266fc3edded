"""Probabilities just below the limit of what a recommendation may risk.

They are raised where the prediction leaves room.
"""

from __future__ import annotations

import numpy as np
import pytest

from knowledge.core.predict.run_probability import reassured


@pytest.mark.parametrize(
    ("p_valid", "share", "facts"),
    [(0.897, 0.5, 0.9), (0.897, 0.81, 0.897), (0.84, 0.2, 0.84), (0.97, 0.2, 0.97), (0.85, 0.8, 0.9)],
)
def test_runs_nearly_sure_to_fit_may_be_recommended_where_a_fifth_of_the_memory_is_left(
    p_valid: float, share: float, facts: float
) -> None:
    assert reassured(np.array([p_valid]), np.array([share])) == pytest.approx([facts])
