"""Nodes: what they are and do; join, drain and resume for administrators."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from knowledge.models import Execution
from portal.accounts.requests import ApiRequest
from portal.api.common.fields import (
    ChoiceField,
    CurrencyField,
    Name,
    Number,
    SearchText,
    StrictBoolean,
    StrictSerializer,
    StrictText,
    WholeNumber,
)
from portal.api.common.idempotent import KEY, create_with_secret
from portal.api.common.pages import PageQuery, page, page_of
from portal.api.common.views import AdminApi, StrictView
from portal.clock import database_now
from portal.node_package import join_command
from portal.wheels import BuildFailed
from scheduler.core.market.types import NodeTerms
from scheduler.core.placement.levels import TopologyLevel
from scheduler.models import Gpu, JoinToken, Node, NodeSpeedTest
from scheduler.selectors.nodes import all_nodes, get_join_token, get_node, join_token_of, matching
from scheduler.selectors.silence import NODE_STATES, is_silent, shown_node_state
from scheduler.services.deletions import remove_node
from scheduler.services.markets.kinds import set_kind
from scheduler.services.nodes.price import MAX_PRICE, set_price
from scheduler.services.nodes.register import create_join_token
from scheduler.services.nodes.state import drain_node, resume_node

log = logging.getLogger(__name__)


class GpuOut(serializers.ModelSerializer[Gpu]):
    busy = serializers.BooleanField(source="held")

    class Meta:
        model = Gpu
        fields = ["index", "model", "memory_bytes", "util", "memory_used_bytes", "busy"]


class SpeedRunOut(serializers.ModelSerializer[Execution]):
    class Meta:
        model = Execution
        fields = [
            *("model_name", "tuning", "tokens_per_sample", "per_device_batch_size"),
            *("gradient_accumulation_steps", "tokens_per_second", "peak_memory_bytes"),
        ]


class SpeedTestOut(serializers.ModelSerializer[NodeSpeedTest]):
    """The newest speed test of one model of GPU."""

    startup_s = serializers.FloatField(allow_null=True)
    runs = SpeedRunOut(source="executions", many=True)

    class Meta:
        model = NodeSpeedTest
        fields = ["gpu_model", "at", "measured_at", "startup_s", "busy_cores", "problem", "runs"]


class LinkSpeedOut(serializers.Serializer[Any]):
    """The slowest pair of GPUs that was measured at a level of closeness."""

    gpu_model = serializers.CharField()
    level = serializers.ChoiceField(choices=[level.word for level in TopologyLevel])
    bytes_per_s = serializers.FloatField(help_text="Sent and received by each in an all-reduce of two.")
    latency_s = serializers.FloatField()


class NodeOut(serializers.ModelSerializer[Node]):
    cannot_train = serializers.DictField(
        child=serializers.CharField(),
        help_text="Tunings that its environment cannot train, with the reasons; such jobs go elsewhere.",
    )
    held_models = serializers.ListField(
        child=serializers.CharField(),
        allow_null=True,
        help_text="Models of the hub that trainings find there without a download, which it may not do; jobs"
        " with others go elsewhere. null: it downloads what it lacks, or its agent does not say.",
    )
    free_gpus = serializers.SerializerMethodField()
    reason = serializers.SerializerMethodField(help_text="Of declines for administrators only.")
    gpus = serializers.SerializerMethodField(
        help_text="Null as `util` and `memory_used_bytes` while nothing is heard of the node."
    )
    state = serializers.SerializerMethodField(
        help_text="As people see it; `silent`: ready or draining, and nothing was heard of it lately."
    )
    internal_state = serializers.CharField(source="state")
    speed_tests = SpeedTestOut(many=True, help_text="What it measured by itself while it was idle.")
    link_speeds = LinkSpeedOut(many=True, help_text="Of the links between its GPUs, as it measured them.")
    link_problem = serializers.CharField(help_text="Why they could not be measured.")
    currency = CurrencyField()
    market = serializers.CharField(
        source="market.name", default=None, allow_null=True, help_text="Where it was rented; null: nowhere."
    )
    withdraw_in_s = serializers.SerializerMethodField(
        help_text="Until its provider takes it back; null: no notice was given."
    )

    class Meta:
        model = Node
        fields = [
            *(
                "id",
                "name",
                "state",
                "internal_state",
                "reason",
                "until",
                "state_since",
                "hostname",
                "cores",
                "memory_bytes",
            ),
            *(
                "kind",
                "market",
                "withdraw_in_s",
                "price_per_gpu_hour",
                "currency",
                "network",
                "software",
                "cannot_train",
                "held_models",
                "enrolled_at",
                "last_seen_at",
                "free_gpus",
                "gpus",
                "speed_tests",
                "link_speeds",
                "link_problem",
            ),
        ]

    @extend_schema_field(serializers.ChoiceField(choices=NODE_STATES))
    def get_state(self, node: Node) -> str:
        return shown_node_state(node, self.context["now"])

    @extend_schema_field(GpuOut(many=True))
    def get_gpus(self, node: Node) -> Any:
        gpus = GpuOut(node.gpus.all(), many=True).data
        if is_silent(node, self.context["now"]):
            return [{**gpu, "util": None, "memory_used_bytes": None} for gpu in gpus]
        return gpus

    def get_reason(self, node: Node) -> str:
        return node.reason if self.context["request"].user.is_admin else node.public_reason

    def get_withdraw_in_s(self, node: Node) -> float | None:
        return (
            max(0.0, (node.withdraw_at - self.context["now"]).total_seconds()) if node.withdraw_at else None
        )

    def get_free_gpus(self, node: Any) -> int:
        """GPUs that no claim holds; only a ready node gives them away."""
        return int(node.gpu_count - node.held)


class ReasonIn(StrictSerializer):
    reason = StrictText(max_length=500, allow_blank=True, default="")


class DrainIn(ReasonIn):
    move_jobs = StrictBoolean(
        default=False, help_text="Running jobs leave with a checkpoint instead of finishing."
    )


class ResumeIn(ReasonIn):
    take_over_gpus = StrictBoolean(
        default=False,
        help_text="The node has the GPUs that it reports now, where they are others than it joined with.",
    )


class JoinTokenIn(StrictSerializer):
    lifetime_s = WholeNumber(min_value=60, max_value=7 * 86_400, default=3600)
    uses = WholeNumber(min_value=1, max_value=1000, default=1)


class JoinTokenOut(serializers.Serializer[Any]):
    join_token = serializers.CharField(
        allow_null=True, help_text="Shown only once; null when the request was repeated."
    )
    command = serializers.CharField(
        allow_null=True,
        help_text="The shell command that makes a machine a node with this token. Null without a"
        " token, or while the portal cannot build the package that it installs.",
    )


class PriceIn(StrictSerializer):
    price = Number(min_value=0, max_value=MAX_PRICE, help_text="Price per GPU hour, in any one currency.")
    seen = Number(help_text="The price you saw; if it has changed since, nothing is changed (409).")


class NodeQuery(PageQuery):
    state = ChoiceField(choices=NODE_STATES, required=False)
    gpu = SearchText(max_length=100, required=False, help_text="A GPU model, as nodes name it.")
    text = SearchText(max_length=200, required=False, help_text="A part of the name, host or id.")


class NodesApi(StrictView):
    query = {"get": NodeQuery}

    @extend_schema(operation_id="nodes_list", responses=page_of(NodeOut))
    def get(self, request: ApiRequest) -> Response:
        """List nodes with their GPUs, and which of them are busy.

        The nodes that joined last come first.
        """
        query = self.parameters
        filters = {name: query.pop(name, "") for name in ("text", "gpu", "state")}
        now = database_now()
        return Response(
            page(matching(all_nodes(), **filters, now=now), lambda node: _shown(request, node, now), **query)
        )


class NodeApi(StrictView):
    @extend_schema(operation_id="nodes_retrieve", responses=NodeOut)
    def get(self, request: ApiRequest, node_id: str) -> Response:
        """One node."""
        return Response(_shown(request, get_node(node_id), database_now()))


def _shown(request: ApiRequest, node: Node, now: datetime) -> Any:
    return NodeOut(node, context={"request": request, "now": now}).data


def _changed(
    request: ApiRequest, node_id: str, takes: type[StrictSerializer], change: Callable[..., object]
) -> Response:
    """Apply `change` with the values of the body and return the node.

    `takes` describes the body.
    """
    body = takes(data=request.data)
    body.is_valid(raise_exception=True)
    change(node=get_node(node_id), actor=request.user, now=database_now(), **body.validated_data)
    return Response(_shown(request, get_node(node_id), database_now()))


class DrainApi(AdminApi):
    @extend_schema(operation_id="nodes_drain", request=DrainIn, responses=NodeOut)
    def post(self, request: ApiRequest, node_id: str) -> Response:
        """Give the node no new work; its jobs finish, or move elsewhere."""
        return _changed(request, node_id, DrainIn, drain_node)


class ResumeNodeApi(AdminApi):
    @extend_schema(operation_id="nodes_resume", request=ResumeIn, responses=NodeOut)
    def post(self, request: ApiRequest, node_id: str) -> Response:
        """Let a drained or blocked node work again.

        Refused (409) while its GPUs are not in order.
        """
        return _changed(request, node_id, ResumeIn, resume_node)


class RemoveNodeApi(AdminApi):
    @extend_schema(operation_id="nodes_remove", request=None, responses={204: None})
    def post(self, request: ApiRequest, node_id: str) -> Response:
        """Take a drained, lost or blocked node out for good.

        The history of jobs goes on naming it.
        """
        remove_node(node=get_node(node_id), actor=request.user, now=database_now())
        return Response(status=204)


class PriceApi(AdminApi):
    @extend_schema(operation_id="nodes_price", request=PriceIn, responses=NodeOut)
    def post(self, request: ApiRequest, node_id: str) -> Response:
        """Change what a GPU hour costs on the node."""
        return _changed(request, node_id, PriceIn, set_price)


class KindIn(StrictSerializer):
    kind = ChoiceField(choices=[kind.value for kind in NodeTerms])
    market = Name(
        max_length=100, allow_blank=True, default="", help_text="The name of a market; empty: none."
    )


class KindApi(AdminApi):
    @extend_schema(operation_id="nodes_kind", request=KindIn, responses=NodeOut)
    def post(self, request: ApiRequest, node_id: str) -> Response:
        """Say on what terms the node is there; an agent with --kind says it itself."""
        return _changed(request, node_id, KindIn, set_kind)


class JoinTokensApi(AdminApi):
    @extend_schema(
        operation_id="join_tokens_create",
        parameters=[KEY],
        request=JoinTokenIn,
        responses={201: JoinTokenOut},
    )
    def post(self, request: ApiRequest) -> Response:
        """A token with which new nodes enrol."""
        data = JoinTokenIn(data=request.data)
        data.is_valid(raise_exception=True)

        def make() -> tuple[JoinToken, str]:
            token = create_join_token(actor=request.user, now=database_now(), **data.validated_data)
            return join_token_of(token), token

        _, token = create_with_secret(request, make=make, load=get_join_token)
        return Response({"join_token": token, "command": _command(request, token)}, status=201)


def _command(request: ApiRequest, token: str | None) -> str | None:
    if token is None:
        return None
    try:
        return join_command(portal=request.build_absolute_uri("/").rstrip("/"), token=token)
    except BuildFailed:
        log.exception("the package of nodes cannot be built")
        return None
