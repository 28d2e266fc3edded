"""Records are built by functions as by their classes."""

from __future__ import annotations

import pytest

from knowledge.core.records import record
from scheduler.record_builders import builder


@record
class Point:
    """A record with a default."""

    x: float
    y: float = 2.0


def test_a_builder_builds_what_the_class_does() -> None:
    point = builder(Point)
    assert point(x=1.0) == Point(x=1.0, y=2.0)
    assert point(y=3.0, x=1.0) == Point(x=1.0, y=3.0)


def test_a_builder_refuses_what_the_class_refuses() -> None:
    point = builder(Point)
    with pytest.raises(TypeError, match="'x'"):
        point(y=1.0)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="'z'"):
        point(x=1.0, z=1.0)  # type: ignore[call-arg]
