"""Checks of uploads.

Large ones are checked beside the web process, with the same answers, and never for minutes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from portal.accounts.errors import TooBusy
from portal.turns import Turns
from scheduler.errors import BadFile
from scheduler.services.files import checking
from tests.harness.hostile import bounded

ROW = b'{"prompt": "a", "completion": "b"}\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "data.jsonl"


@pytest.mark.slow
def test_a_large_file_is_checked_beside_with_the_same_answer(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_bytes(ROW * 40_000)
    with bounded(seconds=0.3):
        beside = checking.check(file)
    monkeypatch.setattr(checking, "SMALL_BYTES", 10**9)
    assert beside == checking.check(file)
    assert beside.rows == 40_000


def test_wrong_lines_are_told_from_beside(file: Path) -> None:
    file.write_bytes(ROW * 40_000 + b'{"prompt": 1}\n')
    with pytest.raises(BadFile) as bad:
        checking.check(file)
    assert bad.value.lines[0][0] == 40_001


def test_a_file_that_takes_too_long_is_refused_with_the_remedy(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "CPU_S", 1)
    file.write_bytes(b"\n" * 40_000_000)
    with bounded(seconds=1), pytest.raises(BadFile, match="split it"):
        checking.check(file)


def test_who_gets_no_turn_hears_it(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "turns", Turns(at_once=1, waiting=0, patience_s=0, busy="later"))
    file.write_bytes(ROW * 40_000)
    with checking.turns.take(), pytest.raises(TooBusy):
        checking.check(file)
