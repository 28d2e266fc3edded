"""Form fields of a job's terms: one for each type of the table.

Their values are those of REST, but for hours in place of seconds. Texts, files, teams, earlier jobs and
parameters have fields of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django import forms

from portal.web.common.currency import BudgetField
from portal.web.common.form_base import NameField
from portal.web.common.number_fields import WholeNumberField
from portal.web.common.pairs_field import PairsField
from portal.web.common.param_fields import form_value
from portal.web.common.time_fields import HoursField, MomentField
from scheduler.core.job_terms import JOB_TERMS, JobTerm, Kind
from scheduler.models import Job
from scheduler.states import PriorityClass

Choices = list[tuple[str, str]]


FIELDS: Mapping[Kind, Callable[..., forms.Field]] = {
    Kind.NAME: lambda term, **common: NameField(max_length=int(term.high), **common),
    Kind.WORD: lambda term, **common: forms.ChoiceField(
        initial=None if term.folded else term.default, **common
    ),
    Kind.RANK: lambda term, **common: _typed({word: term.value(word) for word in term.choices}, **common),
    Kind.FLAG: lambda _, **common: _typed({"true": True, "false": False}, **common),
    Kind.YES_NO: lambda _, **common: _typed({"yes": True, "no": False}, **common),
    Kind.MOMENT: lambda _, **common: MomentField(**common),
    Kind.MONEY: lambda _, **common: BudgetField(**common),
    Kind.COUNT: lambda term, **common: WholeNumberField(min_value=term.low, max_value=term.high, **common),
    Kind.SECONDS: lambda term, **common: HoursField(most_s=term.high, **common),
    Kind.PAIRS: PairsField,
}


def _typed(values: Mapping[str, Any], **common: Any) -> forms.TypedChoiceField:
    return forms.TypedChoiceField(coerce=values.get, empty_value=None, **common)


def term_fields(*, change: bool = False) -> dict[str, forms.Field]:
    """The fields of a new job, or of a change, by the names of their terms."""
    terms = [term for term in JOB_TERMS.values() if term.kind in FIELDS and term.is_open]
    return {term.name: _field(term, change=change) for term in terms if term.change or not change}


def _field(term: JobTerm, *, change: bool) -> forms.Field:
    hours = ", hours" if term.kind is Kind.SECONDS else ""
    common: dict[str, Any] = {"required": False, "label": term.label + hours}
    if term.hint:
        common["help_text"] = term.hint
    if term.choices:
        common["choices"] = _choices(term, change=change)
    return FIELDS[term.kind](term, **common)


def _choices(term: JobTerm, *, change: bool) -> Choices:
    """The words with their texts.

    The default of a new job comes first and is empty: nothing is asked for.
    """
    if term.kind is Kind.RANK and term.default is None:
        return [("", "none"), *term.choices.items()]
    if change:
        return [(word, text) for word, text in term.choices.items() if word]
    usual = form_value(term.word(term.default)) if term.folded else None
    empty = [("", text) for word, text in term.choices.items() if word == usual]
    return [*empty, *((word, text) for word, text in term.choices.items() if word != usual)]


def offer_classes(field: forms.TypedChoiceField, highest: Callable[[], PriorityClass]) -> None:
    """Leave the classes that the person may give; they are read when they are shown."""
    every: Choices = list(field.choices)  # type: ignore[arg-type]  # they are no function yet

    def offered() -> Choices:
        most = highest()
        return [(word, text) for word, text in every if not word or PriorityClass.of_word(word) <= most]

    field.choices = offered


def as_term_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values of REST as the fields show them."""
    return {name: form_value(value) for name, value in values.items()}


def values_of(job: Job, terms: Mapping[str, JobTerm]) -> dict[str, Any]:
    """The job's own values as the fields show them."""
    return as_term_values({name: term.word(term.of(job)) for name, term in terms.items()})
