"""Filters of the list of jobs, in an address or in a body."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError as Refused
from django.db.models import QuerySet
from django.http import QueryDict
from django_filters.rest_framework import CharFilter, Filter, FilterSet, MultipleChoiceFilter
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema_field
from rest_framework.exceptions import ValidationError

from portal.accounts.models import User
from portal.api.common.fields import MOST_NAMED, ZonedDateTime, unknown_names
from scheduler.core.job_terms import JOB_TERMS, LONGEST_KEY, LONGEST_VALUE
from scheduler.models import Job
from scheduler.selectors.job_filters import (
    LIVE,
    in_states,
    of_node,
    of_owner,
    of_team,
)
from scheduler.selectors.metadata import with_metadata
from scheduler.selectors.public_states import PUBLIC_STATES
from trainer.written import composed

METADATA = re.compile(rf"metadata\[(?P<key>.{{1,{LONGEST_KEY}}})\]", re.DOTALL)
STATES = [(state, state) for state in (*PUBLIC_STATES, LIVE)]
METADATA_PARAMETER = OpenApiParameter(
    "metadata",
    {"type": "object", "additionalProperties": {"type": "string"}},
    style="deepObject",
    explode=True,
    description="`metadata[KEY]=TEXT`: jobs that keep this text under this key.",
)


class MomentField(forms.Field):
    """A moment with its offset, as bodies have them."""

    def to_python(self, value: Any) -> Any:
        try:
            return ZonedDateTime().run_validation(value) if value else None
        except ValidationError as wrong:
            raise Refused(" ".join(map(str, wrong.detail))) from wrong


@extend_schema_field(OpenApiTypes.DATETIME)
class MomentFilter(Filter):
    field_class = MomentField


def not_before(field: str) -> MomentFilter:
    return MomentFilter(field_name=field, lookup_expr="gte", help_text="At this time, or later.")


def before(field: str) -> MomentFilter:
    return MomentFilter(field_name=field, lookup_expr="lt", help_text="Before this time.")


class NameField(forms.CharField):
    """A text in the form in which names are kept."""

    def to_python(self, value: Any) -> str:
        return composed(super().to_python(value) or "")


@extend_schema_field(OpenApiTypes.STR)
class NameFilter(CharFilter):
    field_class = NameField

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"max_length": 300, **options})


class JobFilter(FilterSet):
    state = MultipleChoiceFilter(
        choices=STATES,
        method="in_states",
        help_text="One of these; may be repeated. `live`: it has not ended.",
        error_messages={"invalid_choice": f"must be one of {', '.join(word for word, _ in STATES)}"},
    )
    owner = NameFilter(method="of_owner", help_text="Name or id of a person; `me`: your own.")
    team = NameFilter(method="of_team", help_text="Name or id of a team.")
    node = NameFilter(method="of_node", help_text="Name or id of a node that it ran on.")
    array = NameFilter(field_name="array_id", help_text="Id of an array.")
    name = NameFilter(help_text="The whole name.")
    model = NameFilter(help_text="The whole name of the base model.")
    training_file = NameFilter(field_name="training_file_id", help_text="Id of a file.")
    submitted_after = MomentFilter(
        field_name="submitted_at", lookup_expr="gte", help_text="At this time, or later."
    )
    submitted_before = MomentFilter(
        field_name="submitted_at", lookup_expr="lt", help_text="Before this time."
    )
    ended_after = not_before("ended_at")
    ended_before = before("ended_at")

    def in_states(self, jobs: QuerySet[Job], _: str, words: Collection[str]) -> QuerySet[Job]:
        return in_states(jobs, words)

    def of_owner(self, jobs: QuerySet[Job], _: str, text: str) -> QuerySet[Job]:
        return of_owner(jobs, self.asker, text)

    def of_team(self, jobs: QuerySet[Job], _: str, text: str) -> QuerySet[Job]:
        return of_team(jobs, text)

    def of_node(self, jobs: QuerySet[Job], _: str, text: str) -> QuerySet[Job]:
        return of_node(jobs, text)

    @property
    def asker(self) -> User:
        asker: User = self.request.user
        return asker

    def filter_queryset(self, queryset: Any) -> QuerySet[Job]:
        pairs = {key: texts[-1] for key, texts in metadata_of(self.data).items()}
        return with_metadata(super().filter_queryset(queryset), pairs)


def metadata_of(data: Any) -> dict[str, list[str]]:
    """The texts by key of `metadata[KEY]`.

    Raises ValidationError for those that no job has.
    """
    found = {
        match["key"]: data.getlist(name) for name in data if (match := METADATA.fullmatch(name)) is not None
    }
    wrong = dict[str, list[str]]()
    for key, texts in found.items():
        if len(texts[-1]) > LONGEST_VALUE:
            wrong[f"metadata[{key}]"] = [f"may have {LONGEST_VALUE} characters"]
        if "\x00" in key + texts[-1]:
            wrong[f"metadata[{key}]"] = ["holds a NUL character; remove it"]
    if wrong:
        raise ValidationError(wrong)
    return found


def selected(jobs: QuerySet[Job], asked: Mapping[str, Any], request: Any) -> QuerySet[Job]:
    """The jobs that a body's `filter` selects.

    It has the names of the list's parameters; what may be repeated there may be a list here, and `metadata`
    is an object. Raises ValidationError.
    """
    data, wrong, strange = QueryDict(mutable=True), dict[str, list[str]](), list[str]()
    known = (*JobFilter.base_filters, "metadata")
    for name, value in asked.items():
        if name not in known:
            strange.append(name[:50])
        elif name == "metadata":
            problem = JOB_TERMS["metadata"].problem(value) if value else "is empty; leave it out"
            if problem:
                wrong["filter.metadata"] = [problem]
            else:
                data.update({f"metadata[{key}]": text for key, text in value.items()})
        elif name == "state" and isinstance(value, list) and _texts(value):
            data.setlist(name, value)
        elif _texts([value]):
            data[name] = value
        else:
            wrong[f"filter.{name}"] = ["must be a text; several states are a list"]
    found = JobFilter(data, queryset=jobs, request=request)
    if not found.is_valid():
        wrong |= {f"filter.{name}": list(map(str, errors)) for name, errors in found.errors.items()}
    wrong |= {f"filter.{name}": texts for name, texts in unknown_names(strange[:MOST_NAMED], known).items()}
    if wrong:
        raise ValidationError(wrong)
    narrowed: QuerySet[Job] = found.qs
    return narrowed


def _texts(values: Iterable[Any]) -> bool:
    return all(isinstance(value, str) and value for value in values)
