"""The policy that runs the cluster: what it is, and choosing another one."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.response import Response

from portal.accounts.requests import ApiRequest
from portal.api.common.fields import StrictSerializer, StrictText, WholeNumber
from portal.api.common.refs import UserRef
from portal.api.common.viewsets import AdminWrites
from scheduler.core.policies import LIVE, POLICIES
from scheduler.core.policies.parameters import parameters_of, values_of
from scheduler.models import PolicyChoice
from scheduler.selectors.policy import (
    current_choice,
    current_parameters,
    current_policy,
    fallback,
    policy_history,
)
from scheduler.services.policy import choose_policy

SHOWN = 20


class PolicyChoiceOut(serializers.ModelSerializer[PolicyChoice]):
    actor = UserRef(source="chosen_by", allow_null=True)
    created_at = serializers.DateTimeField(source="at")

    class Meta:
        model = PolicyChoice
        fields = ["name", "reason", "parameters", "actor", "created_at"]


class PolicyOut(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="The current policy.")
    parameters = serializers.DictField(
        help_text="The current policy's parameters, with the values that hold."
    )
    fallback = serializers.CharField(
        help_text="Why its last decision was not its own best answer; empty if it was."
    )
    version = serializers.IntegerField(
        help_text="Version of this choice; send it as `seen` to detect concurrent changes."
    )
    live = serializers.ListField(child=serializers.CharField(), help_text="The policies that can be chosen.")
    simulated = serializers.ListField(
        child=serializers.CharField(), help_text="Policies of the simulator only."
    )
    defaults = serializers.DictField(
        child=serializers.DictField(),
        help_text="The parameters of each policy that has any, as they are unless set.",
    )
    summaries = serializers.DictField(child=serializers.CharField(), help_text="What each policy does.")
    history = PolicyChoiceOut(many=True)


class PolicyIn(StrictSerializer):
    name = StrictText(max_length=40, required=False, help_text="The one that decides now unless given.")
    reason = StrictText(max_length=500, allow_blank=True, default="")
    parameters = serializers.DictField(
        required=False,
        help_text="Of the policy's parameters those that are to differ from its defaults. Unless given, those"
        " of the policy that decides now stay, and another one has its defaults.",
    )
    seen = WholeNumber(
        min_value=0, max_value=2**62, allow_null=True, default=None,
        help_text="The `version` that was read; if it has changed since, the answer is 409.",
    )  # fmt: skip


class ClusterPolicy(AdminWrites):
    """The one policy that decides."""

    moving = frozenset({"fallback"})
    serializer_class = PolicyOut
    takes = {"partial_update": PolicyIn}

    def retrieve(self, request: ApiRequest) -> Response:
        """Which policy decides now, and which others there are."""
        return Response(_shown())

    def partial_update(self, request: ApiRequest) -> Response:
        """Let another policy decide from the next tick on (administrators)."""
        choose_policy(**self.body(), **self.by)
        return Response(_shown())


def _shown() -> dict[str, Any]:
    return PolicyOut(
        {
            "name": current_policy(),
            "parameters": values_of(POLICIES[current_policy()], current_parameters()),
            "fallback": fallback(),
            "version": current_choice(),
            "live": LIVE,
            "simulated": [name for name in POLICIES if name not in LIVE],
            "defaults": {
                name: values_of(POLICIES[name], {}) for name in LIVE if parameters_of(POLICIES[name])
            },
            "summaries": {name: policy.description.summary for name, policy in POLICIES.items()},
            "history": policy_history()[:SHOWN],
        }
    ).data
