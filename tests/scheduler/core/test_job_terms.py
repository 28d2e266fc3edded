"""The table of a job's terms agrees with all that takes its names and defaults from it."""

from __future__ import annotations

from dataclasses import fields

import pytest

from scheduler.core.job_terms import JOB_TERMS, ON_THE_ROW, JobTerm, Kind, problems, with_defaults
from scheduler.core.types import JobInfo
from scheduler.models import Job
from scheduler.selectors.jobs import JobColumns
from scheduler.simulator.inputs.trace import COLUMNS
from scheduler.states import PriorityClass

EVERY = pytest.mark.parametrize("term", JOB_TERMS.values(), ids=JOB_TERMS)


@EVERY
def test_its_names_are_those_of_rows_traces_and_decisions(term: JobTerm) -> None:
    if term.kind is not Kind.EARLIER:  # rows of their own
        assert Job._meta.get_field(term.column)
    assert not term.trace or term.trace in COLUMNS
    if term.seen:
        assert term.seen in {one.name for one in fields(JobInfo)}
        assert term.column in JobColumns._fields


@pytest.mark.parametrize("term", ON_THE_ROW.values(), ids=ON_THE_ROW)
def test_a_row_has_the_default_of_the_table(term: JobTerm) -> None:
    assert term.required or term.of(Job()) == (False if term.kind is Kind.YES_NO else term.default)


@EVERY
def test_its_default_is_a_value_and_its_bounds_are_those_of_its_error(term: JobTerm) -> None:
    assert problems({term.name: term.default}) == {}
    if term.low is not None and term.high is not None:
        told = problems({term.name: term.high + 1})[term.name]
        assert told == problems({term.name: term.low - 1})[term.name] == term.range
        assert f"{term.high:,}" in told


def test_a_word_that_is_none_is_told_with_all_that_are() -> None:
    told = problems({"goal": "soon"})["goal"]
    assert told == "must be one of balanced, fastest, cheapest, deadline, budget"


def test_a_change_is_told_in_a_sentence() -> None:
    told = {
        "priority": (PriorityClass.HIGH, "Its class is high now."),
        "preemptible": (False, "It may not be stopped for other jobs now."),
        "spot": (True, "It may use spot nodes now."),
        "max_run_s": (7200, "It may run for 2 h now."),
        "deadline_at": (None, "It has no deadline any more."),
        "budget": (3.5, "Its budget was changed."),
        "metadata": ({}, "Its metadata was changed."),
    }
    assert {name: JOB_TERMS[name].sentence(value) for name, (value, _) in told.items()} == {
        name: sentence for name, (_, sentence) in told.items()
    }


def test_another_name_is_no_term() -> None:
    with pytest.raises(TypeError, match="colour: no term of a job"):
        with_defaults({"model": "builtin/tiny-llama", "colour": "red"})
