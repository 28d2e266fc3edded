"""An attempt of a job."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from portal.api.common.fields import Word
from portal.api.jobs.figures import ActualOut
from portal.api.jobs.resources.promises import (
    PromiseOut,
    promise_fields,
)
from scheduler.core.spending import Spent
from scheduler.models import Attempt, Claim, Failure
from scheduler.selectors.figures.promise import actual_of_attempt
from trainer.protocol import Phase


class ClaimOut(serializers.ModelSerializer[Claim]):
    """A node's share of an attempt."""

    node = serializers.CharField(source="node.name")
    gpus = serializers.SerializerMethodField(help_text="Their numbers on the node.")
    phase = Word(Phase)

    class Meta:
        model = Claim
        fields = ["node", "gpus", "phase", "queued_at", "began_at", "engine_reason"]

    def get_gpus(self, claim: Claim) -> list[int]:
        return sorted(held.gpu.index for held in claim.allocations.all())


class AttemptOut(serializers.ModelSerializer[Attempt]):
    number = serializers.IntegerField(source="fence")
    nodes = ClaimOut(source="claims", many=True)
    config = serializers.SerializerMethodField()
    promise = serializers.SerializerMethodField()
    actual = serializers.SerializerMethodField()
    measured = serializers.SerializerMethodField()
    cause = serializers.SerializerMethodField(
        help_text="Why it ended badly, such as gpu-memory; null until its log was read."
    )

    class Meta:
        model = Attempt
        fields = [
            *("number", "outcome", "reason", "cause", "nodes", "config", "promise", "actual", "measured"),
            *("peak_memory_bytes", "resume_step", "created_at", "running_at", "ended_at"),
        ]

    @extend_schema_field(ActualOut)
    def get_actual(self, attempt: Attempt) -> dict[str, float | None]:
        costs: dict[UUID, Spent] = self.context["costs"]
        return actual_of_attempt(attempt, costs.get(attempt.pk))

    def get_cause(self, attempt: Attempt) -> str | None:
        causes: dict[int, Failure] = self.context["causes"]
        return causes[attempt.fence].cause if attempt.fence in causes else None

    @extend_schema_field(serializers.JSONField())
    def get_measured(self, attempt: Attempt) -> dict[str, Any]:
        meeting = {"rendezvous": attempt.rendezvous} if attempt.rendezvous else {}
        return {**attempt.figures.as_json(), **meeting}

    @extend_schema_field(serializers.JSONField())
    def get_config(self, attempt: Attempt) -> dict[str, Any]:
        return asdict(attempt.promised.config)

    @extend_schema_field(PromiseOut)
    def get_promise(self, attempt: Attempt) -> dict[str, Any]:
        return promise_fields(attempt.promised)
