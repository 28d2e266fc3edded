"""What a notebook shows of a plan, a job and its steps."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from client.foretune import JobFailed
from client.foretune._models import JobFields, Plan, Rows
from tests.client.answers import job
from tests.client.test_commands import PLAN


def step(number: int) -> dict[str, Any]:
    return {"id": number, "step": number, "loss": 2.5, "eval_loss": None, "text": "<b>"}


def test_a_plan_is_a_table_with_the_same_figures_in_html() -> None:
    plan = Plan.parse(PLAN, fields={"model": "<m>", "training_file": "file-1"})
    text, html = repr(plan), plan._repr_html_()
    for figure in ("2 x NVIDIA L4", "62 min (50 min to 83 min)", "23.3 GiB", "0.0002"):
        assert figure in text
        assert f"<td>{figure}" in html
    assert html.startswith("<p>&lt;m&gt; on file-1</p>")
    free = {**PLAN, "currency": "", "options": [{**PLAN["options"][0], "cost": {"value": 0.0}}]}
    assert "cost" not in repr(Plan.parse(free, fields={})), "no node has a price"


def test_a_job_is_one_line() -> None:
    running = JobFields.parse(job(progress={**job()["progress"], "step": 3, "loss": 2.5}))
    assert repr(running) == "JobFields('ftjob-1', state='running', step=3, loss=2.5)"
    assert repr(JobFields.parse(job(name="try"))) == "JobFields('ftjob-1', name='try', state='running')"


def test_steps_are_a_table_and_many_of_them_a_short_one(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Rows(step(number) for number in range(1, 101))
    assert repr(Rows(rows[:1])).split() == ["step", "loss", "text", "1", "2.5", "<b>"]
    assert len(repr(rows).splitlines()) == 1 + 20 + 1
    assert rows._repr_html_().count("<tr>") == 1 + 20 + 1
    assert "<td>100</td><td>2.5</td><td>&lt;b&gt;</td>" in rows._repr_html_()
    assert repr(Rows()) == "nothing measured"
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        rows.to_pandas()


def test_a_job_that_was_cancelled_is_said_to_be_so() -> None:
    cancelled = JobFields.parse(job(state="cancelled"))
    assert str(JobFailed(cancelled, reason="It was cancelled.")) == "Job ftjob-1 was cancelled."
