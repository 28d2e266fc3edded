"""Requests about jobs; the rules themselves are the recipes' and the services'."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from knowledge.core.domain.types import Goal
from portal.accounts.models import User
from portal.accounts.selectors import own_teams
from portal.api.common.fields import (
    ChoiceField,
    Name,
    Number,
    SearchText,
    StrictBoolean,
    StrictSerializer,
    StrictText,
    WholeNumber,
    ZonedDateTime,
)
from portal.api.common.pages import PageQuery
from portal.api.jobs.closeness import ClosenessIn
from scheduler.errors import NotFound
from scheduler.selectors.files import get_file
from scheduler.selectors.jobs import visible_arrays, visible_jobs
from scheduler.selectors.public_states import PUBLIC_STATES
from scheduler.services.jobs.dependencies import MOST, After
from scheduler.services.jobs.objectives import BUDGET_RANGE, MAX_BUDGET
from scheduler.services.jobs.verbs import MAX_RETRIES
from scheduler.services.provenance.sealed import LONGEST, unsealed
from scheduler.services.quotas import MOST_RUN_S
from scheduler.states import DependencyKind, PriorityClass


class BudgetNumber(Number):
    """The most that a job may cost; every wrong amount is told alike."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs["error_messages"] = dict.fromkeys(("min_value", "max_value"), BUDGET_RANGE)
        super().__init__(min_value=0, max_value=MAX_BUDGET, **kwargs)


class PriorityField(ChoiceField):
    """A priority class by its word."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(choices=[one.word for one in PriorityClass], **kwargs)

    def to_internal_value(self, data: Any) -> PriorityClass:  # type: ignore[override]  # a number with a word
        return PriorityClass.of_word(super().to_internal_value(data))

    def to_representation(self, value: Any) -> str:
        return PriorityClass(value).word


class SpotField(ChoiceField):
    """Yes or no, as a word."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(choices=["no", "yes"], **kwargs)

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


class RecommendationIn(StrictSerializer):
    """The two required fields, and whatever else the client wants to fix."""

    model = StrictText(max_length=300, help_text="A base model of the catalogue, e.g. builtin/tiny-llama.")
    training_file = StrictText(max_length=64, help_text="Id of an uploaded file.")
    goal = ChoiceField(
        choices=[goal.value for goal in Goal],
        default=Goal.BALANCED.value,
        help_text="The goal: `deadline` is the cheapest option that ends by deadline_at, `budget` the fastest"
        " within budget. The two limits come first with every goal.",
    )
    params = Params(default=dict, help_text="Fixed parameters; the recommendation fills in the others.")


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


class JobIn(ClosenessIn, RecommendationIn):
    validation_file = StrictText(max_length=64, required=False, allow_null=True)
    name = Name(max_length=200, required=False, allow_blank=True)
    team = Name(
        max_length=100, required=False, allow_null=True,
        help_text="Name of one of your teams, as `me/` lists them; its members see the job.",
    )  # fmt: skip
    deadline_at = ZonedDateTime(
        required=False, allow_null=True, help_text="Required for the goal deadline; within ten years."
    )
    begin_at = ZonedDateTime(
        required=False, allow_null=True,
        help_text="The job does not start before; within a year from now. One that is past: at once.",
    )  # fmt: skip
    after = AfterIn(  # type: ignore[call-arg]  # the length is the list's
        many=True, required=False, max_length=MOST,
        help_text="Jobs, and whole arrays, that must end before this one may start.",
    )  # fmt: skip
    budget = BudgetNumber(
        required=False, allow_null=True,
        help_text="In the currency of node prices; required for the goal budget.",
    )  # fmt: skip
    retries = WholeNumber(min_value=0, max_value=MAX_RETRIES, required=False)
    priority = PriorityField(
        required=False,
        help_text="Its class: higher ones go first, and may stop lower ones where the policy stops jobs.",
    )
    preemptible = StrictBoolean(
        required=False,
        help_text="May it be stopped for other jobs? If not, it borrows no GPUs of other teams.",
    )
    max_run_s = WholeNumber(
        min_value=1, max_value=MOST_RUN_S, required=False, allow_null=True,
        help_text="The longest that it may run, in seconds, all its attempts together; it then ends as"
        " failed, with its last checkpoint kept. Unless said, what the owner's jobs may.",
    )  # fmt: skip
    spot = SpotField(
        required=False,
        help_text="May it use spot nodes, which can be withdrawn at any time? Unless said, `yes` if it has a"
        " deadline. Refused for jobs whose checkpoints are too large to be kept at the portal.",
    )
    reading = StrictText(
        max_length=LONGEST, required=False, allow_null=True,
        help_text="From `intents/` or `imports/`: keeps with the job where its values were read.",
    )  # fmt: skip


class ChangeIn(ClosenessIn):
    """Fields that are left out stay as they are."""

    seen = ChoiceField(
        choices=PUBLIC_STATES,
        required=False,
        help_text="The state you saw; if it has changed since, nothing is changed (409).",
    )
    version = WholeNumber(
        min_value=0, required=False,
        help_text="The job's `version` that you saw; if it has changed since, nothing is changed (409).",
    )  # fmt: skip
    priority = PriorityField(required=False)
    preemptible = StrictBoolean(required=False)
    max_run_s = WholeNumber(
        min_value=1, max_value=MOST_RUN_S, required=False, allow_null=True,
        help_text="Null: as long as your jobs may run.",
    )  # fmt: skip
    goal = ChoiceField(choices=[goal.value for goal in Goal], required=False)
    deadline_at = ZonedDateTime(required=False, allow_null=True, help_text="Null: none any more.")
    budget = BudgetNumber(required=False, allow_null=True, help_text="Null: none any more.")
    spot = SpotField(required=False, help_text="May it use spot nodes?")
    params = Params(
        required=False,
        help_text="Fixed parameters; null leaves one to the recommendation again. Those that change what is"
        " learnt can be changed only before the first attempt.",
    )


class UnseenObjects(ValidationError):
    """Jobs or arrays to come after that do not exist, or may not be seen: alike."""

    status_code = 404


class NoteIn(StrictSerializer):
    note = StrictText(
        max_length=200, allow_blank=True, default="", help_text="Why, in words for the job's owner."
    )


class JobQuery(PageQuery):
    state = ChoiceField(choices=PUBLIC_STATES, required=False)
    model = SearchText(max_length=300, required=False)


def with_objects(*, user: User, values: dict[str, Any]) -> dict[str, Any]:
    """Put files and the team in place of ids and its name.

    Raises ValidationError naming every one that there is not, and UnseenObjects if it comes after one.
    """
    found, wrong = dict(values), dict[str, Any]()
    for field in ("training_file", "validation_file"):
        if file_id := values.get(field):
            try:
                found[field] = get_file(user, file_id)
            except NotFound:
                wrong[field] = ["is not one of your files; upload it first"]
    if after := values.get("after"):
        found["after"], unknown = _after(user, after)
        if unknown:
            wrong["after"] = unknown
    if seal := found.pop("reading", None):
        found["read"] = [read] if (read := unsealed(user, seal)) else []
        if read is None:
            wrong["reading"] = ["is not a reading of yours of the last day; read it again, or leave it out"]
    if name := values.get("team"):
        found["team"] = own_teams(user).filter(name=name).first()
        if found["team"] is None:
            wrong["team"] = ["is not the name of one of your teams"]
    if wrong:
        raise (UnseenObjects if "after" in wrong else ValidationError)(wrong)
    return found


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
