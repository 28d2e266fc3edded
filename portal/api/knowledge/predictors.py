"""Versions of the predictor, and which of them answers."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.response import Response

from knowledge.models import PredictorVersion
from knowledge.predictors.model_registry import promote_version, roll_back
from knowledge.selectors import predictor_versions
from portal.api.common.fields import StrictSerializer, WholeNumber
from portal.api.common.ids import IdField
from portal.api.common.viewsets import AdminWrites


class PredictorOut(serializers.ModelSerializer[PredictorVersion]):
    id = IdField(PredictorVersion)

    class Meta:
        model = PredictorVersion
        fields = ["id", "number", "active", "rows", "metrics", "reason", "created_at", "promoted_at"]


class RollBackIn(StrictSerializer):
    seen = WholeNumber(
        min_value=1,
        required=False,
        help_text="The active version you saw; if it has changed since, the answer is 409.",
    )


class Predictors(ListModelMixin, RetrieveModelMixin, AdminWrites):
    """Trained predictors; administrators say which one answers."""

    noun, is_named = "predictor", False
    about = {
        "list": "Trained predictors, newest first, and why each was promoted or not.",
        "retrieve": "One predictor with its measured errors.",
    }
    serializer_class = PredictorOut
    queryset = predictor_versions()
    lookup_url_kwarg = "predictor_id"
    takes = {"roll_back": RollBackIn}
    orders = {"created_at": "created_at", "promoted_at": "promoted_at"}

    @action(detail=True, methods=["post"])
    def promote(self, request: Any, predictor_id: str) -> Response:
        """Let a version answer from now on, whatever its errors (administrators)."""
        return self.tell(promote_version(number=self.get_object().number, **self.by))

    @action(detail=False, methods=["post"], url_path="roll-back")
    def roll_back(self, request: Any) -> Response:
        """Undo the last promotion; doing it again goes further back (administrators)."""
        return self.tell(roll_back(**self.body(), **self.by))
