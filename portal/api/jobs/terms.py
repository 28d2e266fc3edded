"""The terms of a job in requests and answers, with a field for each type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from portal.api.common.fields import (
    ChoiceField,
    Name,
    Number,
    StrictBoolean,
    StrictSerializer,
    StrictText,
    WholeNumber,
    ZonedDateTime,
)
from portal.api.common.refs import TeamRef
from scheduler.core.job_terms import JOB_TERMS, LONGEST_VALUE, ON_THE_ROW, JobTerm, Kind
from scheduler.states import DependencyKind

YES_NO = ["no", "yes"]
Field = serializers.Field[Any, Any, Any, Any]


class RankField(ChoiceField):
    """A rank by its word."""

    def __init__(self, term: JobTerm, **kwargs: Any) -> None:
        self.term = term
        super().__init__(choices=list(term.choices), **kwargs)

    def to_internal_value(self, data: Any) -> Any:
        return self.term.value(super().to_internal_value(data))

    def to_representation(self, value: Any) -> str:
        return str(self.term.word(value))


class YesNoField(ChoiceField):
    """Yes or no, as a word."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(choices=YES_NO, **kwargs)

    def to_internal_value(self, data: Any) -> bool:  # type: ignore[override]  # kept as a truth value
        return super().to_internal_value(data) == "yes"

    def to_representation(self, value: Any) -> str:
        return "yes" if value else "no"


class Params(serializers.DictField):
    """Parameters by name.

    The recipe checks each of them, so that all interfaces give the same errors.
    """

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            raise ValidationError("must be an object of parameters")
        return data


class PairsField(serializers.DictField):
    """Texts by key."""

    child = StrictText(allow_blank=True, max_length=LONGEST_VALUE)

    def __init__(self, term: JobTerm, **kwargs: Any) -> None:
        self.term = term
        super().__init__(**kwargs)

    def to_internal_value(self, data: Any) -> dict[str, str]:
        if wrong := self.term.problem(data):
            raise ValidationError(wrong)
        pairs: dict[str, str] = data
        return pairs


class AfterIn(StrictSerializer):
    job = StrictText(max_length=40, required=False, help_text="Id of a job that you see.")
    array = StrictText(
        max_length=40,
        required=False,
        help_text="Or id of an array, of which all jobs must have succeeded, or ended.",
    )
    kind = ChoiceField(
        choices=[kind.value for kind in DependencyKind],
        default=DependencyKind.SUCCEEDED.value,
        help_text="`ended`: in whatever way. If it cannot succeed any more, the new job is cancelled.",
    )

    def validate(self, attrs: dict[str, str]) -> dict[str, str]:
        if ("job" in attrs) == ("array" in attrs):
            raise ValidationError({"job": ["name either a job or an array"]})
        return attrs


def _whole(term: JobTerm, **options: Any) -> Field:
    return WholeNumber(min_value=term.low, max_value=term.high, **options)


def _amount(term: JobTerm, **options: Any) -> Field:
    """Every wrong amount is told alike."""
    options["error_messages"] = dict.fromkeys(("min_value", "max_value"), term.range)
    return Number(min_value=term.low, max_value=term.high, **options)


REQUESTED: Mapping[Kind, Callable[..., Field]] = {
    Kind.TEXT: lambda term, **options: StrictText(max_length=term.high, **options),
    Kind.NAME: lambda term, **options: Name(max_length=term.high, allow_blank=True, **options),
    Kind.FILE: lambda _, **options: StrictText(max_length=64, **options),
    Kind.TEAM: lambda term, **options: Name(max_length=term.high, **options),
    Kind.PARAMS: lambda _, **options: Params(**options),
    Kind.EARLIER: lambda term, **options: AfterIn(
        many=True,
        max_length=term.high,  # type: ignore[call-arg]  # the length is the list's
        **options,
    ),
    Kind.WORD: lambda term, **options: ChoiceField(choices=list(term.choices), **options),
    Kind.RANK: RankField,
    Kind.FLAG: lambda _, **options: StrictBoolean(**options),
    Kind.YES_NO: lambda _, **options: YesNoField(**options),
    Kind.MOMENT: lambda _, **options: ZonedDateTime(**options),
    Kind.MONEY: _amount,
    Kind.COUNT: _whole,
    Kind.SECONDS: _whole,
    Kind.PAIRS: PairsField,
}


def request_fields(*, change: bool = False) -> dict[str, Field]:
    """The fields of a new job, or of a change, by the names of their terms."""
    terms = [term for term in JOB_TERMS.values() if term.change or not change]
    return {term.name: _requested(term, change=change) for term in terms}


def _requested(term: JobTerm, *, change: bool) -> Field:
    options: dict[str, Any] = {"required": term.required and not change, "help_text": term.help}
    if term.is_nullable:
        options["allow_null"] = True
    if term.kind in (Kind.WORD, Kind.PARAMS) and not change:
        # Only a default without parts of its own is one that generators of clients can take over.
        options["default"] = dict if term.kind is Kind.PARAMS else term.default
        del options["required"]
    return REQUESTED[term.kind](term, **options)


# A serializer of the model knows the other types.
ANSWERED: Mapping[Kind, Callable[..., Field]] = {
    Kind.FILE: lambda term, **options: serializers.CharField(source=f"{term.name}_id", **options),
    Kind.TEAM: lambda _, **options: TeamRef(**options),
    Kind.RANK: RankField,
    Kind.WORD: lambda term, **options: ChoiceField(choices=list(term.choices), **options),
    Kind.YES_NO: lambda _, **options: YesNoField(**options),
    Kind.PAIRS: PairsField,
}


def answer_fields() -> dict[str, Field]:
    """The fields of terms that a serializer of the model would not make itself."""
    return {
        term.name: ANSWERED[term.kind](term, read_only=True, allow_null=term.is_nullable, help_text=term.help)
        for term in ON_THE_ROW.values()
        if term.kind in ANSWERED
    }
