"""Fixtures that the scheduler's tests share."""

from __future__ import annotations

import pytest

from tests.harness import world
from tests.harness.fake_node import FakeNode


@pytest.fixture
def node() -> FakeNode:
    """A joined node with two CPU slots."""
    return world.fake_node()
