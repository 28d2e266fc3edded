"""Requests of the contract as requests of the REST API, by one table of fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from knowledge.core.recommend.submit_defaults import base_learning_rate
from portal.accounts.models import Team, User
from portal.api.common.errors import flatten
from portal.api.common.fields import Number, StrictSerializer, StrictText, WholeNumber
from portal.api.jobs.requests import JobIn, with_objects
from portal.openai.errors import NotHere, Refused
from portal.openai.names import LONGEST_SUFFIX, PREFIX
from scheduler.errors import BadParameters
from trainer.recipes import PARAMS

AUTO = "auto"
# What the contract calls a term of a job, or one of its parameters.
TERMS = {"suffix": "name", "metadata": "metadata"}
PARAMETERS = {
    "n_epochs": "epochs",
    "batch_size": "effective_batch_size",
    "learning_rate_multiplier": "learning_rate",
}
LARGEST_SEED = int(PARAMS["seed"].high or 0)
FILES = ("training_file", "validation_file")
IGNORED = ("trainingType",)  # Azure's clients send it
NO_METHOD = (
    "The method {} is not trained here yet; supervised is, and needs no method at all. For preferences, train"
    " on the preferred answers as chats."
)
NO_INTEGRATIONS = (
    "integrations: this portal sends no figures to {} yet; leave the field out. The figures of each step are"
    " among the job's events, in its result file and under /api/jobs/ID/metrics/."
)
NO_CONTINUING = (
    "{} was made by a job, and a training starts from base models alone. Train its base model, {}, on the"
    " rows of both files in one."
)


class AutoOr(serializers.Field[Any, Any, Any, Any]):
    """A number, or `auto` for what the portal recommends; None stands for `auto`."""

    def __init__(self, number: serializers.Field[Any, Any, Any, Any], **kwargs: Any) -> None:
        super().__init__(required=False, allow_null=True, **kwargs)
        self.number = number

    def to_internal_value(self, data: Any) -> Any:
        if data == AUTO:
            return None
        if isinstance(data, str):
            raise ValidationError("must be a number or auto")
        return self.number.run_validation(data)


class Hyperparameters(StrictSerializer):
    n_epochs = AutoOr(Number())
    batch_size = AutoOr(WholeNumber())
    learning_rate_multiplier = AutoOr(Number())


class Supervised(StrictSerializer):
    hyperparameters = Hyperparameters(required=False, allow_null=True)


class Method(StrictSerializer):
    type = StrictText(required=False)
    supervised = Supervised(required=False, allow_null=True)


class CreateIn(StrictSerializer):
    """The fields of the contract, `portal` with those of the REST API beside them."""

    model = StrictText(max_length=400)
    training_file = StrictText(max_length=64)
    validation_file = StrictText(max_length=64, required=False, allow_null=True)
    method = Method(required=False, allow_null=True)
    hyperparameters = Hyperparameters(required=False, allow_null=True)
    suffix = StrictText(max_length=LONGEST_SUFFIX, required=False, allow_null=True)
    seed = WholeNumber(min_value=0, max_value=LARGEST_SEED, required=False, allow_null=True)
    integrations = serializers.ListField(required=False, allow_null=True)
    metadata = serializers.DictField(required=False, allow_null=True)
    portal = serializers.DictField(required=False, allow_null=True)


class OfPortal(JobIn):
    """What a request may say in `portal`."""

    def get_fields(self) -> dict[str, Any]:
        taken = {"model", *FILES, *TERMS.values()}
        return {name: field for name, field in super().get_fields().items() if name not in taken}


def job_terms(*, user: User, body: Any, team: Team | None) -> dict[str, Any]:
    """The terms of the job that the body asks for, as `submit_job` takes them.

    team: who is charged where the body does not say. Raises ValidationError, BadParameters, and Refused, by
    the names of the contract.
    """
    if isinstance(body, Mapping):
        _refuse_methods(body)
        body = {name: value for name, value in body.items() if name not in IGNORED}
    asked = CreateIn(data=body)
    asked.is_valid(raise_exception=True)
    given = {name: value for name, value in asked.validated_data.items() if value is not None}
    if integrations := given.pop("integrations", None):
        kinds = {str(one.get("type")) for one in integrations if isinstance(one, Mapping)}
        raise Refused(
            NO_INTEGRATIONS.format(" and ".join(sorted(kinds)) or "others"),
            param="integrations", code="unsupported_integration",
        )  # fmt: skip
    _refuse_fine_tuned(given["model"])
    terms = _merged(_of_portal(given.pop("portal", {})), given)
    if team is not None:
        terms.setdefault("team", team.name)
    with in_words_of_the_contract():
        job = JobIn(data=terms, context={"user": user})
        job.is_valid(raise_exception=True)
        try:
            return with_objects(user=user, values=job.validated_data)
        except ValidationError as refused:
            _refuse_files(flatten(refused.detail), terms)
            raise


@contextmanager
def in_words_of_the_contract() -> Iterator[None]:
    """Tell wrong terms by the names of the contract, and an unknown model as such."""
    try:
        yield
    except BadParameters as wrong:
        if "model" in wrong.fields:
            raise NotHere(f"model: {wrong.fields['model']}", param="model", code="model_not_found") from wrong
        raise type(wrong)(_renamed(wrong.fields)) from wrong
    except ValidationError as wrong:
        raise type(wrong)(dict(_renamed(flatten(wrong.detail)))) from wrong


def _renamed(fields: Mapping[str, str]) -> dict[str, str]:
    own = {**{term: name for name, term in TERMS.items()}, "params.seed": "seed"}
    own |= {f"params.{param}": f"hyperparameters.{name}" for name, param in PARAMETERS.items()}
    contract = ("model", *FILES)
    return {
        own.get(name, name if name in contract else f"portal.{name}"): text for name, text in fields.items()
    }


def _refuse_methods(body: Mapping[str, Any]) -> None:
    method = body.get("method")
    kind = method.get("type", "supervised") if isinstance(method, Mapping) else "supervised"
    if isinstance(kind, str) and kind != "supervised":
        raise Refused(NO_METHOD.format(kind[:50]), param="method.type", code="unsupported_method")


def _refuse_fine_tuned(model: str) -> None:
    if model.startswith(PREFIX):
        base = model.removeprefix(PREFIX).split(":")[0]
        raise Refused(NO_CONTINUING.format(model[:200], base[:200]), param="model", code="unsupported_model")


def _refuse_files(wrong: Mapping[str, str], terms: Mapping[str, Any]) -> None:
    """Tell a file that is not there as such: some clients wait at any 400."""
    for name in FILES:
        if name in wrong:
            raise NotHere(f"{name}: {str(terms[name])[:64]} {wrong[name]}", param=name)


def _of_portal(asked: Mapping[str, Any]) -> dict[str, Any]:
    """The terms beyond the contract, checked by name alone; JobIn checks the values."""
    known = OfPortal().fields
    if unknown := next((name for name in asked if name not in known), None):
        raise Refused(
            f"portal.{unknown[:50]} is not known here; known are {', '.join(known)}.",
            param=f"portal.{unknown[:50]}", code="unknown_parameter",
        )  # fmt: skip
    return dict(asked)


def _merged(of_portal: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """The fields of the contract as terms, beside those in `portal`."""
    hyperparameters = _hyperparameters(given)
    params = of_portal.get("params") or {}
    values = {PARAMETERS[name]: value for name, value in hyperparameters.items()}
    if (seed := given.pop("seed", None)) is not None:
        values["seed"] = seed
    if isinstance(params, Mapping):
        if twice := next((name for name in values if name in params), None):
            raise Refused(
                f"portal.params.{twice}: this is set outside of portal as well; give it once.",
                param=f"portal.params.{twice}", code="invalid_value",
            )  # fmt: skip
        if "learning_rate" in values:
            values["learning_rate"] = _rate(values["learning_rate"], given["model"], params)
        params = {**params, **values}
    return {**of_portal, **{TERMS.get(name, name): value for name, value in given.items()}, "params": params}


def _hyperparameters(given: dict[str, Any]) -> dict[str, Any]:
    """Those that are fixed, from the place of today or the older one."""
    method = (given.pop("method", {}).get("supervised") or {}).get("hyperparameters") or {}
    older = given.pop("hyperparameters", {})
    for name, value in older.items():
        if value is not None and method.get(name) not in (None, value):
            raise Refused(
                f"hyperparameters.{name}: method.supervised.hyperparameters has another value; give one.",
                param=f"hyperparameters.{name}", code="invalid_value",
            )  # fmt: skip
    return {name: value for name, value in {**older, **method}.items() if value is not None}


def _rate(multiplier: float, model: str, params: Mapping[str, Any]) -> float:
    """The learning rate: so many times that from which trainings of the model start."""
    base, bounds = base_learning_rate(model, str(params.get("tuning", "lora"))), PARAMS["learning_rate"]
    rate = multiplier * base
    if not (bounds.low or 0) <= rate <= (bounds.high or 1):
        raise Refused(
            f"learning_rate_multiplier: {multiplier:g} times the base rate of {base:g} is a learning rate of"
            f" {rate:g}, and it must be between {bounds.low:g} and {bounds.high:g}.",
            param="hyperparameters.learning_rate_multiplier", code="invalid_value",
        )  # fmt: skip
    return rate
