"""On how many nodes and GPUs a job may be tried."""

from __future__ import annotations

from typing import Any

import pytest

from knowledge.core.domain.config_space import open_bundles


@pytest.mark.parametrize(
    ("sizes", "fixed", "max_nodes", "expected"),
    [
        ((2, 2), {}, 1, [(1, 1), (1, 2)]),
        ((2, 2), {}, 2, [(1, 1), (1, 2), (2, 4)]),
        ((2, 2), {"number_nodes": 2}, 2, [(2, 4)]),
        ((2, 2), {"number_nodes": 2}, 1, []),
        ((2, 2), {"number_nodes": 3}, 3, []),
        ((2, 8), {"number_nodes": 2}, 2, [(2, 4)]),
        ((2, 4, 8), {"number_nodes": 2}, 2, [(2, 8)]),
        ((2, 2), {"number_gpus": 4}, 2, [(2, 4)]),
        ((2, 2), {"number_gpus": 2, "number_nodes": 2}, 2, [(2, 2)]),
        ((), {"number_nodes": 2}, 2, []),
    ],
)
def test_a_fixed_number_of_nodes_is_kept_and_may_be_of_unequal_ones(
    sizes: tuple[int, ...], fixed: dict[str, Any], max_nodes: int, expected: list[tuple[int, int]]
) -> None:
    assert open_bundles(sizes, fixed, max_nodes) == expected
