"""The log of a run elsewhere, read; its speed kept as an execution."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.parsers import MultiPartParser
from rest_framework.response import Response

from knowledge.core.data.sources.table import BadCell
from knowledge.core.domain.types import Config
from knowledge.log_formats.kept import read_with_formats
from knowledge.models import Execution
from knowledge.reading.logs.elsewhere import LogElsewhere, UnreadableLog, text_of
from knowledge.services import record_log
from portal.accounts.models import User
from portal.accounts.requests import ApiRequest
from portal.api.common.fields import Name, WrittenNumber
from portal.api.common.ids import public_id
from portal.api.common.views import StrictView
from portal.api.jobs.failures import AnswerOut
from portal.clock import database_now
from portal.limits.bodies import LOGS, takes_files
from scheduler import hints
from trainer.recipes import PARAMS

RUN = ("model", "tuning", "gpu_model", "number_gpus", "tokens_per_sample", "per_device_batch_size")


def _count(**more: Any) -> WrittenNumber:
    return WrittenNumber(min_value=1, max_value=1_000_000, required=False, **more)


class LogReadIn(serializers.Serializer[Any]):
    """A log; with the configuration of its run, its speed is kept."""

    file = serializers.FileField(help_text="Text, at most 2 MB; of a longer log its end.")
    model = Name(max_length=300, required=False)
    tuning = serializers.ChoiceField(choices=PARAMS["tuning"].choices, required=False)
    gpu_model = Name(max_length=100, required=False, help_text="A GPU of the catalogue.")
    number_gpus = _count()
    tokens_per_sample = _count()
    per_device_batch_size = _count()
    gradient_accumulation_steps = _count()

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if unknown := set(self.initial_data) - set(self.fields):
            raise ValidationError({name: ["is not known here; leave it out"] for name in unknown})
        known = {name for name in RUN if name in attrs}
        if known and known != set(RUN):
            raise ValidationError({name: ["is needed to keep the run"] for name in RUN if name not in known})
        return attrs

    @property
    def config(self) -> Config | None:
        """The run's configuration; None where the run is not to be kept."""
        values = {name: value for name, value in self.validated_data.items() if name != "file"}
        return Config(model_name=values.pop("model"), **values) if "model" in values else None


class LogReadOut(serializers.Serializer[Any]):
    steps_per_s = serializers.FloatField(allow_null=True)
    tokens_per_s = serializers.FloatField(allow_null=True, help_text="As the log says.")
    answers = serializers.DictField(child=AnswerOut(), help_text="By question.")
    note = serializers.CharField(allow_blank=True, help_text="On a language model that is asked for help.")
    execution = serializers.CharField(
        allow_null=True, help_text="Id of the execution that keeps its speed, unlearnt until it is confirmed."
    )


@takes_files(LOGS)
class LogElsewhereApi(StrictView):
    parser_classes = (MultiPartParser,)

    @extend_schema(
        operation_id="logs_create", request={"multipart/form-data": LogReadIn}, responses={200: LogReadOut}
    )
    def post(self, request: ApiRequest) -> Response:
        """Return what the log of a run elsewhere tells.

        With the configuration of the run, its speed is kept.
        """
        data = LogReadIn(data=request.data)
        data.is_valid(raise_exception=True)
        try:
            text = text_of(data.validated_data["file"].read())
            found, note = read_with_formats(request.user, text, database_now())
        except UnreadableLog as refused:
            raise ValidationError({"file": [str(refused)]}) from refused
        answers = {question: AnswerOut(answer).data for question, answer in found.answers.items()}
        if note:
            hints.read_scripts()
        config = data.config
        execution = public_id(Execution, _kept(found, config, request.user).pk) if config else None
        content = {"steps_per_s": found.steps_per_s, "tokens_per_s": found.tokens_per_s, "answers": answers}
        return Response({**content, "note": note, "execution": execution})


def _kept(found: LogElsewhere, config: Config, keeper: User) -> Execution:
    rate = found.rate(config.effective_batch_size * config.tokens_per_sample)
    if not rate:
        raise ValidationError({"file": ["has no steps with times and no tokens/s; its speed is unknown"]})
    try:
        return record_log(config=config, tokens_per_second=rate, keeper=keeper, now=database_now())
    except BadCell as wrong:
        raise ValidationError({wrong.column: [str(wrong)]}) from wrong
