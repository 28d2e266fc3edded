"""The time of day at which something is expected, by the reader's clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from portal.web.templatetags.portal_format import clock, in_own_time

NOW = datetime(2026, 11, 23, 14, 0, tzinfo=UTC)  # a Monday


@pytest.mark.parametrize(
    ("ahead", "shown"),
    [
        (timedelta(minutes=32), "14:32"),
        (timedelta(hours=19), "Tue 09:00"),
        (timedelta(days=6), "Sun 14:00"),
        (timedelta(days=7), "2026-11-30 14:00"),
        (timedelta(days=-1), "2026-11-22 14:00"),
    ],
)
def test_only_another_day_is_named(monkeypatch: pytest.MonkeyPatch, ahead: timedelta, shown: str) -> None:
    monkeypatch.setattr(timezone, "now", lambda: NOW)
    with timezone.override(ZoneInfo("UTC")):
        assert f">{shown}<" in clock(NOW + ahead)


def test_the_readers_zone_decides_on_the_day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timezone, "now", lambda: NOW)
    with timezone.override(ZoneInfo("Asia/Tokyo")):
        assert ">23:30<" in clock(NOW + timedelta(minutes=30))
        assert ">Tue 00:30<" in clock(NOW + timedelta(minutes=90))


@pytest.mark.parametrize("seconds", ["", ":00"])
def test_moments_within_sentences_are_told_by_the_readers_clock(seconds: str) -> None:
    with timezone.override(ZoneInfo("Asia/Tokyo")):
        text = in_own_time(f"Closed from 2026-11-23T14:30{seconds}+00:00 on.")
    assert "T14:30" not in text
    assert "2026-11-23 23:30" in text
