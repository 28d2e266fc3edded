"""Numbered reports survive whatever ends the agent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trainer.agent.claims.collect import MAX_BACKLOG, Collector
from trainer.agent.storage.spool import EVENTS, LOG, Spool
from trainer.protocol import MAX_LOG_BYTES, ReportKind


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path / "reports.jsonl")


def numbers(spool: Spool, limit: int = 500, limit_bytes: int = 10**6) -> list[int]:
    return [report.seq for report in spool.pending(limit, limit_bytes)]


def test_numbers_and_positions_go_on_after_a_restart(spool: Spool, tmp_path: Path) -> None:
    spool.add(ReportKind.STEP, {"step": 1}, EVENTS, 30)
    spool.add(ReportKind.LOG, {"text": "x"}, LOG, 5)
    again = Spool(tmp_path / "reports.jsonl")
    assert (again.offset(EVENTS), again.offset(LOG)) == (30, 5)
    again.add(ReportKind.STEP, {"step": 2}, EVENTS, 60)
    again.acknowledge(1)
    assert numbers(again) == [2, 3]


@pytest.mark.parametrize("cut", [15, -1])
def test_a_line_that_was_cut_off_is_written_again(spool: Spool, tmp_path: Path, cut: int) -> None:
    spool.add(ReportKind.STEP, {"step": 1}, EVENTS, 30)
    spool.add(ReportKind.STEP, {"step": 2}, EVENTS, 60)
    first, second = (tmp_path / "reports.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "reports.jsonl").write_text(first + second[:cut])
    again = Spool(tmp_path / "reports.jsonl")
    again.add(ReportKind.STEP, {"step": 2}, EVENTS, 60)
    lines = (tmp_path / "reports.jsonl").read_text().splitlines()
    assert [json.loads(line)["seq"] for line in lines] == [1, 2]


def test_nothing_is_sent_before_the_portal_said_what_it_has(spool: Spool) -> None:
    spool.add(ReportKind.STEP, {"step": 1})
    assert numbers(spool) == []
    spool.acknowledge(0)
    assert numbers(spool) == [1]


def test_a_portal_that_was_restored_from_a_backup_gets_again_what_it_lost(spool: Spool) -> None:
    spool.acknowledge(0)
    for step in range(5):
        spool.add(ReportKind.STEP, {"step": step})
    spool.acknowledge(4)
    assert numbers(spool) == [5]
    spool.acknowledge(2)
    assert numbers(spool) == [3, 4, 5]
    spool.add(ReportKind.STEP, {"step": 6})
    spool.acknowledge(5)
    assert numbers(spool) == [6]


def test_numbers_that_a_power_failure_took_back_are_not_used_again(spool: Spool, tmp_path: Path) -> None:
    """The portal has them: it would take what comes under them for known."""
    for step in range(5):
        spool.add(ReportKind.STEP, {"step": step})
    lines = (tmp_path / "reports.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "reports.jsonl").write_text("".join(lines[:3]))
    again = Spool(tmp_path / "reports.jsonl")
    again.add(ReportKind.LOG, {"text": "late"}, LOG, 70)  # before the portal was asked
    again.acknowledge(5)
    again.add(ReportKind.RESULT, {"step": 5})
    reported = [(report.seq, report.kind) for report in again.pending(500, 10**6)]
    assert reported == [(6, ReportKind.LOG), (7, ReportKind.RESULT)]
    third = Spool(tmp_path / "reports.jsonl")
    third.acknowledge(5)
    assert numbers(third) == [6, 7]
    assert third.offset(LOG) == 70


def test_a_sync_takes_a_limited_number_and_size_of_reports_but_always_one(spool: Spool) -> None:
    for step in range(5):
        spool.add(ReportKind.STEP, {"step": step})
    spool.acknowledge(0)
    assert numbers(spool, limit=3) == [1, 2, 3]
    assert numbers(spool, limit_bytes=1) == [1]
    assert numbers(spool, limit=0) == []


def test_events_are_reported_when_their_line_is_whole(spool: Spool, tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    collector = Collector(tmp_path, spool)
    assert collector.events() == []
    events.write_text('{"kind": "start", "steps_total": 5}\n{"kind": "step", "st')
    assert collector.events() == [(ReportKind.START, {"steps_total": 5})]
    events.write_text('{"kind": "start", "steps_total": 5}\n{"kind": "step", "step": 1}\n')
    assert collector.events() == [(ReportKind.STEP, {"step": 1})]
    assert spool.offset(EVENTS) == events.stat().st_size


def test_no_event_is_lost_where_a_long_backlog_is_read_in_pieces(
    spool: Spool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after hours without an agent: a piece ends in the middle of a line."""
    monkeypatch.setattr("trainer.agent.claims.collect.READ_BYTES", 100)
    lines = [json.dumps({"kind": "step", "step": step}) for step in range(20)]
    huge = json.dumps({"kind": "step", "text": "x" * 250})
    (tmp_path / "events.jsonl").write_text("\n".join([*lines[:10], huge, *lines[10:], ""]))
    found = Collector(tmp_path, spool).rest()
    assert [body["step"] for _, body in found] == list(range(20))


@pytest.mark.parametrize(
    "line",
    ["no json", "[1]", '{"step": 1}', '{"kind": "unknown"}', '{"kind": "step", "x": "\\u0000"}',
     '{"kind": "step", "x": "\\ud800"}', '{"kind": ["step"]}',
     '{"kind": "step", "x": "' + "y" * 20_000 + '"}',
     "[" * 20_000 ],
)  # fmt: skip
def test_an_event_that_no_portal_could_take_is_left_out(spool: Spool, tmp_path: Path, line: str) -> None:
    (tmp_path / "events.jsonl").write_text(line + '\n{"kind": "step", "step": 1, "loss": 1e999}\n')
    assert Collector(tmp_path, spool).events() == [(ReportKind.STEP, {"step": 1, "loss": None})]


def test_single_steps_are_left_out_of_a_flood(
    spool: Spool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MAX_BACKLOG > 1000
    monkeypatch.setattr("trainer.agent.claims.collect.MAX_BACKLOG", 10)
    lines = [json.dumps({"kind": "step", "step": step}) for step in range(50)]
    (tmp_path / "events.jsonl").write_text("\n".join([*lines, '{"kind": "eval", "eval_loss": 1}', ""]))
    Collector(tmp_path, spool).rest()
    assert spool.backlog == 12


def test_a_log_is_told_in_pieces_and_without_a_gap(spool: Spool, tmp_path: Path) -> None:
    text = "".join(f"ligne {number} \u00e9\n" for number in range(2000))
    (tmp_path / "log.txt").write_text(text)
    assert len(text.encode()) < MAX_LOG_BYTES
    Collector(tmp_path, spool).rest()
    spool.acknowledge(0)
    assert "".join(report.body["text"] for report in spool.pending(500, 10**6)) == text
