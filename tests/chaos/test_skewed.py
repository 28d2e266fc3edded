"""The settable clock stands in for the system's in every place where that is used."""

from __future__ import annotations

import time

import pytest

from tests.chaos.skewed import set_clock


def test_a_clock_that_is_off_may_be_an_attribute_of_a_class(monkeypatch: pytest.MonkeyPatch) -> None:
    from django.utils import timezone

    before = time.time()
    for module, name in ((time, "time"), (time, "time_ns"), (timezone, "now")):
        monkeypatch.setattr(module, name, getattr(module, name))
    set_clock(-90)

    class Throttle:
        timer = time.time

    assert Throttle().timer() == pytest.approx(before - 90, abs=5)
