"""Ends of jobs as lines of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from portal.events.models import Event
from portal.events.types import EventType
from portal.notices.file.channel import FileChannel


def test_each_end_is_a_line(tmp_path: Path, settings: Any) -> None:
    settings.DATA_DIR = tmp_path
    for number, type in ((3, EventType.JOB_FAILED), (8, EventType.JOB_SUCCEEDED)):
        FileChannel().tell([Event(position=number, subject=f"ftjob-{number}", type=type)])
    assert (tmp_path / "ended.txt").read_text() == "3 ftjob-3 failed\n8 ftjob-8 succeeded\n"
