"""Nodes: what they are and do; join, drain and resume for administrators."""

from __future__ import annotations

import logging
from typing import Any

from django.db.models import QuerySet
from django_filters.rest_framework import FilterSet
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.response import Response

from knowledge.models import Execution
from portal.accounts.requests import ApiRequest
from portal.api.common.fields import (
    ChoiceField,
    CurrencyField,
    Number,
    StrictBoolean,
    StrictSerializer,
    StrictText,
    WholeNumber,
    Word,
)
from portal.api.common.filters import TextFilter, WordFilter
from portal.api.common.idempotent import KEY, create_with_secret
from portal.api.common.ids import RowField
from portal.api.common.refs import MarketRef
from portal.api.common.viewsets import AdminWrites
from portal.api.nodes.topology import LEVELS, TopologyOut, topology_told
from portal.clock import database_now
from portal.node_package import join_command
from portal.wheels import BuildFailed
from scheduler.core.market.types import NodeTerms
from scheduler.models import Gpu, JoinToken, Node, NodeSpeedTest
from scheduler.selectors.markets.quotes import all_markets
from scheduler.selectors.nodes import all_nodes, get_join_token, join_token_of, matching
from scheduler.selectors.silence import NODE_STATES, is_silent, shown_node_state
from scheduler.services.deletions import remove_node
from scheduler.services.markets.kinds import change_node
from scheduler.services.nodes.price import MAX_PRICE
from scheduler.services.nodes.register import create_join_token
from scheduler.services.nodes.state import drain_node, resume_node
from scheduler.states import NodeState

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
    level = Word(LEVELS)
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
    internal_state = Word(NodeState, source="state")
    speed_tests = SpeedTestOut(many=True, help_text="What it measured by itself while it was idle.")
    link_speeds = LinkSpeedOut(many=True, help_text="Of the links between its GPUs, as it measured them.")
    link_problem = serializers.CharField(help_text="Why they could not be measured.")
    currency = CurrencyField()
    market = MarketRef(allow_null=True, help_text="Where it was rented; null: nowhere.")
    created_at = serializers.DateTimeField(source="enrolled_at", help_text="When it joined.")
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
                "created_at",
                "last_seen_at",
                "free_gpus",
                "gpus",
                "speed_tests",
                "link_speeds",
                "link_problem",
            ),
        ]

    @extend_schema_field(Word(NODE_STATES))
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


class NodeSeen(StrictSerializer):
    price_per_gpu_hour = Number(required=False)


class NodeChangeIn(StrictSerializer):
    price_per_gpu_hour = Number(
        min_value=0, max_value=MAX_PRICE, help_text="In the portal's currency; that of a market follows it."
    )
    kind = ChoiceField(
        choices=[kind.value for kind in NodeTerms],
        help_text="On what terms the node is there; an agent with --kind says it itself.",
    )
    market = RowField(
        lambda _: all_markets(), allow_null=True, help_text="Id or name of a market; null: none."
    )
    seen = NodeSeen(
        required=False, help_text="The price you saw; if it has changed since, the answer is 409."
    )


class NodeFilter(FilterSet):
    state = WordFilter(NODE_STATES)
    gpu = TextFilter(max_length=100, help_text="A GPU model, as nodes name it.")
    text = TextFilter(max_length=200, help_text="A part of the name, host or id.")

    def filter_queryset(self, queryset: QuerySet[Node]) -> QuerySet[Node]:
        return matching(queryset, **self.form.cleaned_data, now=database_now())


class Nodes(ListModelMixin, RetrieveModelMixin, AdminWrites):
    """Nodes with their GPUs; everyone sees them, administrators run them."""

    noun = "node"
    moving = frozenset(
        {"state", "state_since", "last_seen_at", "free_gpus", "gpus", "withdraw_in_s", "held_models"}
        | {"speed_tests", "link_speeds", "link_problem"}
    )
    about = {
        "list": "Nodes with their GPUs, and which of them are busy; those that joined last come first.",
        "retrieve": "One node.",
    }
    serializer_class = NodeOut
    queryset = all_nodes()
    lookup_url_kwarg = "node_id"
    filterset_class = NodeFilter
    orders = {"name": "name", "created_at": "enrolled_at", "price_per_gpu_hour": "price_per_gpu_hour"}
    takes = {
        "partial_update": NodeChangeIn,
        "drain": DrainIn,
        "resume": ResumeIn,
        "join_tokens": JoinTokenIn,
    }
    tells = {"topology": TopologyOut, "join_tokens": {201: JoinTokenOut}}

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), "now": self.now}

    def partial_update(self, request: Any, node_id: str) -> Response:
        """Change the price of a node, or on what terms it is there (administrators)."""
        node, changes = self.get_object(), self.body()
        seen = changes.pop("seen", {}).get("price_per_gpu_hour")
        change_node(node=node, changes=changes, seen_price=seen, **self.by)
        return self.tell(self.row_of_key(node.pk))

    def destroy(self, request: Any, node_id: str) -> Response:
        """Take a drained, lost or blocked node out for good (administrators).

        The history of jobs goes on naming it.
        """
        remove_node(node=self.get_object(), **self.by)
        return Response(status=204)

    @action(detail=True, methods=["post"])
    def drain(self, request: Any, node_id: str) -> Response:
        """Give the node no new work (administrators).

        Its jobs finish, or with `move_jobs` go on elsewhere from a checkpoint.
        """
        node = drain_node(node=self.get_object(), **self.body(), **self.by)
        return self.tell(self.row_of_key(node.pk))

    @action(detail=True, methods=["post"])
    def resume(self, request: Any, node_id: str) -> Response:
        """Let a drained or blocked node work again (administrators).

        Refused (409) while its GPUs are not in order.
        """
        node = resume_node(node=self.get_object(), **self.body(), **self.by)
        return self.tell(self.row_of_key(node.pk))

    @action(detail=True)
    def topology(self, request: Any, node_id: str) -> Response:
        """Where the GPUs of a node sit, and how close free ones lie.

        The jobs that hold them are told as far as you may see them.
        """
        return Response(topology_told(self.get_object(), request.user))

    @extend_schema(parameters=[KEY])
    @action(detail=False, methods=["post"], url_path="join-tokens")
    def join_tokens(self, request: Any) -> Response:
        """Make a token with which new nodes enrol (administrators).

        It comes with the command that uses it.
        """
        values = self.body()

        def make() -> tuple[JoinToken, str]:
            token = create_join_token(**values, **self.by)
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
