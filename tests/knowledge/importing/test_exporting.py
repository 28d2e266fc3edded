"""Exported executions can be imported again, and is safe to open in a spreadsheet."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from knowledge.core.data.sources import generic
from knowledge.importing.service import import_history
from knowledge.models import Execution
from tests.knowledge.conftest import NOW
from tests.knowledge.importing.test_importing import GOOD, HEADER, text

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("begin", ["=1+1", "+1", "-1", "@SUM(A1)"])
def test_cells_like_formulas_stay_text_are_escaped_and_come_back(tmp_path: Path, begin: str) -> None:
    import_history(text=text(f"{GOOD},{begin}", header=f"{HEADER},origin"), now=NOW)
    assert Execution.objects.get().origin == begin
    path = tmp_path / "out.csv"
    call_command("export_history", str(path), stdout=io.StringIO())
    written = path.read_text()
    assert f",'{begin}," in written
    Execution.objects.all().delete()
    assert import_history(text=written, now=NOW).added == 1
    assert Execution.objects.get().origin == begin


def test_a_peak_keeps_the_memory_that_it_is_a_share_of() -> None:
    peaks = "peak_memory_fraction,gpu_memory_bytes"
    import_history(text=text(f"{GOOD},0.25,{12 << 30}", header=f"{HEADER},{peaks}"), now=NOW)
    written = generic.write([Execution.objects.get().row])
    Execution.objects.all().delete()
    import_history(text=written, now=NOW)
    row = Execution.objects.get()
    assert row.peak_memory_bytes == 3 << 30
    assert row.row.gpu_memory_bytes == 12 << 30


def test_only_own_runs_can_be_asked_for(tmp_path: Path) -> None:
    import_history(text=text(GOOD), now=NOW)
    out = io.StringIO()
    call_command("export_history", str(tmp_path / "own.csv"), own=True, stdout=out)
    assert "0 executions written" in out.getvalue()


def test_a_shell_may_keep_paths_and_neither_form_adds_anything(tmp_path: Path) -> None:
    moved = GOOD.replace(GOOD.split(",")[0], "/srv/models/grace", 1)
    import_history(text=text(moved), now=NOW)
    for options, name in (({}, "/grace"), ({"paths": True}, "/srv/models/grace")):
        path = tmp_path / "out.csv"
        call_command("export_history", str(path), stdout=io.StringIO(), **options)
        written = path.read_text()
        assert f"\n{name}," in written
        assert import_history(text=written, now=NOW).added == 0


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be written"):
        call_command("export_history", str(tmp_path / "missing" / "out.csv"))
