"""How close a job's GPUs shall lie, in requests and answers."""

from __future__ import annotations

from typing import Any

from rest_framework.exceptions import ValidationError

from portal.api.common.fields import ChoiceField, StrictSerializer
from scheduler.core.placement.levels import TopologyLevel
from scheduler.core.types import Topology
from scheduler.services.jobs.terms.closeness import Closely


class LevelField(ChoiceField):
    """How close GPUs lie, by its word."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(choices=[level.word for level in TopologyLevel], **kwargs)

    def to_internal_value(self, data: Any) -> TopologyLevel:  # type: ignore[override]  # a number with a word
        return TopologyLevel.of_word(super().to_internal_value(data))

    def to_representation(self, value: Any) -> str:
        return TopologyLevel(value).word


class ClosenessIn(StrictSerializer):
    """How close GPUs shall lie, in requests."""

    topology = ChoiceField(
        choices=[one.value for one in Topology],
        required=False,
        help_text="Whether its GPUs shall lie close together; `automatic` where the job gains from it.",
    )
    topology_level = LevelField(
        required=False,
        allow_null=True,
        help_text="How close, with `best_effort` and `guaranteed`: what they share on a node.",
    )

    @property
    def changes(self) -> dict[str, Any]:
        """The values of a change, with closeness in one, as the service takes it."""
        values = dict(self.validated_data)
        names = {"topology", "topology_level"} & values.keys()
        found = {name: values.pop(name) for name in names}
        if not found:
            return values
        if "topology" not in found:
            raise ValidationError({"topology_level": ["goes with topology; give both"]})
        return {**values, "closeness": Closely(found["topology"], found.get("topology_level"))}
