"""Reading nodes: for pages, programs and the node API."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Count, Exists, OuterRef, Prefetch, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from portal.accounts.services import digest_of
from portal.events.models import Event
from scheduler.errors import NotFound
from scheduler.models import Allocation, Claim, Gpu, JoinToken, Node, NodeSpeedTest
from scheduler.selectors.silence import SILENT, silent_nodes


def all_nodes() -> QuerySet[Node]:
    """Return every node, by name, with its GPUs, held GPUs and live claims.

    held: the number of GPUs held; live_claims: its live claims.
    """
    allocations = Allocation.objects.filter(released_at__isnull=True)
    gpus = Gpu.in_place.annotate(held=Exists(allocations.filter(gpu=OuterRef("pk"))))
    live = Claim.objects.filter(attempt__ended_at__isnull=True).select_related("attempt__job")
    # Counted apart: a join would walk through all allocations there ever were.
    held = allocations.filter(gpu__node=OuterRef("pk")).order_by().values("gpu__node")
    count = Gpu.in_place.filter(node=OuterRef("pk")).order_by().values("node")
    return (
        Node.present.select_related("state_by", "market")
        .annotate(
            gpu_count=Coalesce(Subquery(count.annotate(n=Count("pk")).values("n")), 0),
            held=Coalesce(Subquery(held.annotate(n=Count("pk")).values("n")), 0),
        )
        .prefetch_related(
            Prefetch("gpus", gpus.order_by("index")),
            Prefetch("claims", live, to_attr="live_claims"),
            Prefetch("speed_tests", NodeSpeedTest.objects.prefetch_related("executions")),
        )
        .order_by("name")
    )


def matching(nodes: QuerySet[Node], *, text: str, gpu: str, state: str, now: datetime) -> QuerySet[Node]:
    """Return the nodes that match all given filters; an empty one filters nothing.

    text: in the name, host or id.
    gpu: the model of one of its GPUs.
    state: the state in which people see it.
    """
    if text:
        nodes = nodes.filter(Q(name__icontains=text) | Q(hostname__icontains=text) | Q(pk__icontains=text))
    if gpu:
        nodes = nodes.filter(Exists(Gpu.in_place.filter(node=OuterRef("pk"), model=gpu)))
    if state == SILENT:
        return nodes.filter(silent_nodes(now))
    return nodes.filter(~silent_nodes(now), state=state) if state else nodes


def get_node(node_id: str) -> Node:
    """The node with its annotations. Raises NotFound."""
    node = all_nodes().filter(pk=node_id).first()
    if node is None:
        raise NotFound(f"There is no node {node_id}.")
    return node


def was_removed(node_id: str) -> bool:
    """Whether there was such a node and an administrator removed it."""
    return Node.objects.filter(pk=node_id, removed_at__isnull=False).exists()


def node_by_token(token: str) -> Node | None:
    """The node that holds this token."""
    return Node.present.filter(token_hash=digest_of(token)).first()


def get_join_token(pk: str) -> JoinToken:
    """The join token that has this primary key."""
    return JoinToken.objects.get(pk=pk)


def join_token_of(token: str) -> JoinToken:
    """The row of a join token that was just made."""
    return JoinToken.objects.get(token_hash=digest_of(token))


def may_join(token: str, now: datetime) -> bool:
    """Tell whether this join token would let a node enrol now.

    The token keeps its uses.
    """
    return JoinToken.objects.filter(token_hash=digest_of(token), expires_at__gt=now, uses_left__gt=0).exists()


def node_events(node: Node) -> QuerySet[Event]:
    """A node's history, newest first."""
    return node.events.select_related("actor").order_by("-id")


def live_claims(node: Node) -> QuerySet[Claim]:
    """The claims of live attempts on this node, as a sync answers them.

    Files and checkpoints are read for new claims alone: every sync would pay for their columns.
    """
    return (
        Claim.objects.filter(node=node, attempt__ended_at__isnull=True)
        .select_related("attempt__job")
        .order_by("attempt__created_at", "pk")
    )
