"""Requests about jobs; the rules themselves are the recipes' and the services'."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from portal.accounts.models import Team, User
from portal.accounts.selectors import own_team
from portal.api.common.fields import MOST_NAMED, ChoiceField, StrictSerializer, StrictText, WholeNumber
from portal.api.jobs.terms import request_fields
from scheduler.core.job_terms import JOB_TERMS, Kind
from scheduler.errors import BadParameters, NotFound
from scheduler.models import DatasetFile
from scheduler.models.plans import LONGEST_ID
from scheduler.selectors.files import get_file
from scheduler.selectors.jobs import visible_arrays, visible_jobs
from scheduler.selectors.public_states import PUBLIC_STATES
from scheduler.services.jobs.dependencies import After
from scheduler.services.jobs.recommend import clean_request
from scheduler.services.provenance.sealed import LONGEST, unsealed
from scheduler.states import DependencyKind
from trainer.recipes import DEFAULT_RECIPE, RECIPES

MOST_CANCELLED = 100  # jobs that one request names


class JobIn(StrictSerializer):
    """The two required terms, and whatever else the client wants to say."""

    reading = StrictText(
        max_length=LONGEST, required=False, allow_null=True,
        help_text="From `intents/` or `imports/`: keeps with the job where its values were read.",
    )  # fmt: skip

    def get_fields(self) -> dict[str, Any]:
        return {**request_fields(), **super().get_fields()}

    def to_internal_value(self, data: Any) -> Any:
        try:
            return super().to_internal_value(data)
        except ValidationError as refused:
            if not isinstance(data, Mapping):
                raise
            wrong = self._also_wrong_rows(data) | _wrong_values(data)
            raise ValidationError({**wrong, **_details(refused)}) from refused

    def _also_wrong_rows(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Files and teams of a body that is refused anyway."""
        named = {
            name: data.get(name) for name, term in JOB_TERMS.items() if term.kind in (Kind.FILE, Kind.TEAM)
        }
        texts = {name: text for name, text in named.items() if isinstance(text, str) and text}
        asker = self.context.get("user")
        if asker is None or not texts:
            return {}
        try:
            with_objects(user=asker, values=texts)
        except ValidationError as refused:
            return _details(refused)
        return {}


def _details(refused: ValidationError) -> dict[str, Any]:
    return dict(refused.detail) if isinstance(refused.detail, dict) else {}


def _wrong_values(data: Mapping[str, Any]) -> dict[str, Any]:
    """What is wrong with model and parameters of a body that is refused anyway."""
    model, params = data.get("model", ""), data.get("params") or {}
    recipe = data.get("recipe", DEFAULT_RECIPE.name)
    if not isinstance(model, str) or not isinstance(params, dict) or recipe not in [*RECIPES]:
        return {}
    try:
        clean_request(model=model, params=params, recipe=recipe)
    except BadParameters as refused:
        return {name: [text] for name, text in refused.fields.items()}
    return {}


def job_body(request: Any) -> dict[str, Any]:
    """The checked terms of a job in a body.

    Raises ValidationError naming all that is wrong.
    """
    data = JobIn(data=request.data, context={"user": request.user})
    data.is_valid(raise_exception=True)
    return with_objects(user=request.user, values=data.validated_data)


class PlanIn(StrictSerializer):
    """A job as it was planned; nothing else goes with it."""

    plan = StrictText(
        min_length=LONGEST_ID,
        max_length=LONGEST_ID,
        help_text="From `recommendations/`, at most 24 hours old: exactly its parameters and its promise, or"
        " 409 `plan_outdated` where that does not hold any more.",
    )

    def to_internal_value(self, data: Any) -> Any:
        others = [name for name in data if name not in self.fields]
        if others:
            told = "stands in the plan already; leave it out, or leave out plan"
            raise ValidationError({str(name)[:50]: [told] for name in others[:MOST_NAMED]})
        return super().to_internal_value(data)


class JobRequestOut(JobIn):
    """A body for `jobs/`; terms that were left out stay out."""

    def get_fields(self) -> dict[str, Any]:
        fields = super().get_fields()
        del fields["reading"]
        for name, field in fields.items():
            field.required = name in ("model", "training_file")
        return fields


class ResolvedQuery(StrictSerializer):
    resolved = serializers.BooleanField(
        default=False, help_text="With all parameters as they were chosen; else those that you fixed."
    )


class ChangeIn(StrictSerializer):
    """Terms that are left out stay as they are."""

    seen = ChoiceField(
        choices=PUBLIC_STATES,
        required=False,
        help_text="The state you saw; if it has changed since, nothing is changed (409).",
    )
    version = WholeNumber(
        min_value=0, required=False,
        help_text="The job's `version` that you saw; if it has changed since, nothing is changed (409).",
    )  # fmt: skip

    def get_fields(self) -> dict[str, Any]:
        return {**super().get_fields(), **request_fields(change=True)}


class UnseenObjects(ValidationError):
    """Jobs or arrays to come after that do not exist, or may not be seen: alike."""

    status_code = 404


class NoteIn(StrictSerializer):
    note = StrictText(
        max_length=200, allow_blank=True, default="", help_text="Why, in words for the job's owner."
    )


class Selection(serializers.DictField):
    """A filter in a body; `portal/api/jobs/filters.py` reads it."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict) or not data:
            raise ValidationError("must be an object with a filter at least")
        return data


class ReasonIn(StrictSerializer):
    reason = StrictText(
        max_length=200, allow_blank=True, default="", help_text="Why; it is kept in the job's event."
    )


class CancelJobsIn(ReasonIn):
    """Jobs by their ids, or by a filter and how many it selects."""

    ids = serializers.ListField(
        child=StrictText(max_length=64),
        min_length=1,
        max_length=MOST_CANCELLED,
        required=False,
        help_text="Of the jobs.",
    )
    filter = Selection(required=False, help_text="Parameters of the list of jobs, such as owner and state.")
    confirm_count = WholeNumber(
        min_value=0,
        required=False,
        help_text="With `filter`: how many jobs that have not ended it selects, 1,000 at most; else 409.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("ids" in attrs) == ("filter" in attrs):
            raise ValidationError({"ids": ["give either ids or a filter"]})
        if ("filter" in attrs) != ("confirm_count" in attrs):
            raise ValidationError({"confirm_count": ["goes with filter: how many jobs it selects"]})
        return attrs


def with_objects(*, user: User, values: dict[str, Any]) -> dict[str, Any]:
    """Put files and the team in place of ids and its name.

    Raises ValidationError naming every one that there is not, and UnseenObjects if it comes after one.
    """
    found, wrong = dict(values), dict[str, Any]()
    for name, term in JOB_TERMS.items():
        row_of = ROWS.get(term.kind)
        if row_of and values.get(name):
            found[name], complaint = row_of(user, values[name])
            if complaint:
                wrong[name] = complaint
    if seal := found.pop("reading", None):
        found["read"] = [read] if (read := unsealed(user, seal)) else []
        if read is None:
            wrong["reading"] = ["is not a reading of yours of the last day; read it again, or leave it out"]
    if wrong:
        wrong = (_wrong_values(values) if "model" in values else {}) | wrong
        raise (UnseenObjects if "after" in wrong else ValidationError)(wrong)
    return found


def _file(user: User, file_id: str) -> tuple[DatasetFile | None, list[str]]:
    try:
        return get_file(user, file_id), []
    except NotFound:
        return None, ["is not one of your files; upload it first"]


def _team(user: User, name: str) -> tuple[Team | None, list[str]]:
    team = own_team(user, name)
    return team, [] if team else ["is neither the name nor the id of one of your teams"]


def _after(user: User, requested: list[dict[str, str]]) -> tuple[list[After], dict[str, Any]]:
    """The jobs and arrays that the person sees, and errors of others by place."""
    jobs = visible_jobs(user).in_bulk([one["job"] for one in requested if "job" in one])
    arrays = visible_arrays(user, [one["array"] for one in requested if "array" in one])
    found, wrong = list[After](), dict[str, Any]()
    for number, one in enumerate(requested):
        field = "job" if "job" in one else "array"
        on = jobs.get(one["job"]) if field == "job" else arrays.get(one["array"])
        if on is None:
            wrong[str(number)] = {field: [f"is not the id of one of your {field}s"]}
        else:
            found.append(After(on, DependencyKind(one["kind"])))
    return found, wrong


# Of the terms that name rows: the row and what is wrong.
ROWS: dict[Kind, Callable[[User, Any], tuple[Any, Any]]] = {
    Kind.FILE: _file,
    Kind.TEAM: _team,
    Kind.EARLIER: _after,
}
