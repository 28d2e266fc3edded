"""A channel that was added by its checklist is told what happens, and is written into docs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from portal.events.tasks import give_positions
from portal.notices.tasks import tell
from scheduler.services.jobs.verbs import cancel_job
from tests.generated_docs import EVENTS, with_channels
from tests.harness import world


@pytest.mark.django_db
def test_it_tells_what_happens_from_then_on(tmp_path: Path, settings: Any) -> None:
    settings.DATA_DIR = tmp_path
    before, after = world.job(), world.job()
    cancel_job(job=before, actor=before.owner, now=before.submitted_at)
    give_positions.run()
    tell.run()
    cancel_job(job=after, actor=after.owner, now=after.submitted_at)
    give_positions.run()
    tell.run()
    (line,) = (tmp_path / "ended.txt").read_text().splitlines()
    assert line.endswith(f" {after.pk} cancelled")


def test_its_row_can_be_written_into_docs() -> None:
    row = "| `file` | a line of `ended.txt` in the portal's data folder for each job that ends |"
    assert row in with_channels(EVENTS.read_text())
