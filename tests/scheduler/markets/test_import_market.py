"""`manage.py import_market`: a recorded history is kept as a whole or not at all."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from portal.clock import database_now
from scheduler.models import MarketSample, SampleSource
from tests.scheduler.markets import making

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]
HISTORY = "t_s,price,available\n0,0.3,2\n1800,0.4,0\n3600,,4\n"


def run(folder: Path, text: str = HISTORY, **options: str) -> str:
    file, said = folder / "history.csv", StringIO()
    file.write_text(text)
    call_command("import_market", str(file), stdout=said, **{"market": "east", **options})
    return said.getvalue()


def test_a_history_is_kept_so_that_it_ends_now(tmp_path: Path) -> None:
    making.market()
    assert run(tmp_path) == "3 samples were kept for east.\n"
    kept = list(MarketSample.objects.filter(source=SampleSource.IMPORT))
    assert [(one.price, one.available) for one in kept] == [(0.3, 2), (0.4, 0), (None, 4)]
    assert kept[2].at - kept[0].at == timedelta(hours=1)
    assert timedelta(0) <= database_now() - kept[2].at < timedelta(minutes=1)


def test_a_history_begins_when_it_is_told_and_is_imported_once(tmp_path: Path) -> None:
    making.market()
    run(tmp_path, since="2026-03-01T12:00:00+02:00")
    assert MarketSample.objects.earliest("at").at.isoformat() == "2026-03-01T10:00:00+00:00"
    with pytest.raises(CommandError, match="imported already"):
        run(tmp_path, since="2026-03-01T12:00:00+02:00")
    assert MarketSample.objects.count() == 3


@pytest.mark.parametrize(
    ("text", "options", "why"),
    [
        (HISTORY, {"market": "west"}, "there is no market west; add it first"),
        (HISTORY, {"since": "2026-03-01"}, "--since must be a moment with its offset"),
        (HISTORY, {"since": "2999-03-01T12:00:00+00:00"}, "in the future"),
        ("t_s,price,available\n0,-1,2\n", {}, "price"),
        ("t_s,price,available\n0,0.3,2\n60,5000,2\n", {}, "one GPU and one hour"),
        ("t_s,price,available\n0,0.3,2\n0,0.4,2\n", {}, "one sample for a moment"),
        ("t_s,price,available\n0,0.3,2\n60,0.4,2\n30,0.3,2\n", {}, "sort the samples by time"),
        ("a,b\n1,2\n", {}, "are no known market's"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_kept(
    tmp_path: Path, text: str, options: dict[str, str], why: str
) -> None:
    making.market()
    with pytest.raises(CommandError, match=why):
        run(tmp_path, text, **options)
    assert not MarketSample.objects.exists()
