"""Nodes and their GPUs.

Free capacity is never stored: it follows from the open allocations.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q

from portal.events.models import Event
from portal.events.selectors import history
from scheduler.core.market.types import NodeTerms
from scheduler.core.types import GpuSite
from scheduler.models.ids import new_node_id
from scheduler.states import REMOVABLE, Block, NodeState


class PresentNodes(models.Manager["Node"]):
    """The nodes that were not removed."""

    def get_queryset(self) -> models.QuerySet[Node]:
        return super().get_queryset().filter(removed_at__isnull=True)


class InPlaceGpus(models.Manager["Gpu"]):
    """The GPUs that their nodes have, or had until they were removed."""

    def get_queryset(self) -> models.QuerySet[Gpu]:
        return super().get_queryset().filter(gone_at__isnull=True)


class PresentGpus(InPlaceGpus):
    """The GPUs of nodes that were not removed."""

    def get_queryset(self) -> models.QuerySet[Gpu]:
        return super().get_queryset().filter(node__removed_at__isnull=True)


class Node(models.Model):
    """One machine with an agent.

    `last_seen_at` is written from the database's clock only. A removed node keeps its row, for
    the history of jobs; code that looks for machines asks `present`.
    """

    id = models.CharField(primary_key=True, max_length=40, default=new_node_id, editable=False)
    name = models.CharField(max_length=100)
    state = models.CharField(max_length=10, choices=[(s.value, s.value) for s in NodeState])
    reason = models.CharField(max_length=500, blank=True)
    block_kind = models.CharField(max_length=30, blank=True)
    until = models.DateTimeField(null=True, blank=True)  # a block that time heals ends here
    state_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True)
    state_since = models.DateTimeField()
    move_jobs = models.BooleanField(default=False)  # while draining: running jobs leave with a checkpoint
    token_hash = models.CharField(max_length=64, unique=True)
    boot_id = models.CharField(max_length=64, blank=True)  # the start of the agent that speaks for it
    sync_seq = models.BigIntegerField(default=0, db_default=0)  # of the last message of that start
    old_boot_ids = models.JSONField(default=list)
    old_seqs = models.JSONField(default=dict, db_default={})  # earlier start -> its last message
    strays = models.JSONField(default=list, db_default=[])  # when earlier starts spoke lately
    protocol = models.IntegerField(default=1)
    hostname = models.CharField(max_length=255, blank=True)
    cores = models.IntegerField(default=0)
    memory_bytes = models.BigIntegerField(default=0)
    software = models.JSONField(default=dict)
    # tuning -> why, as the agent says; empty: everything
    cannot_train = models.JSONField(default=dict, db_default=models.Value({}, models.JSONField()))
    # of the hub; null: it downloads what it lacks, or its agent does not say
    held_models = models.JSONField(null=True)
    address = models.CharField(max_length=64, blank=True)
    price_per_gpu_hour = models.FloatField(default=0.0)  # that of the newest NodePrice; 0: no price
    kind = models.CharField(
        max_length=10, default=NodeTerms.OWNED, db_default=NodeTerms.OWNED,
        choices=[(kind.value, kind.value) for kind in NodeTerms],
    )  # fmt: skip
    market = models.ForeignKey(
        "scheduler.Market", models.SET_NULL, null=True, blank=True, related_name="nodes"
    )  # where it was rented
    withdraw_at = models.DateTimeField(null=True, blank=True)  # when its provider takes it back
    give_back = models.BooleanField(default=False, db_default=False)  # to its market, once it runs nothing
    network = models.CharField(max_length=20, default="none")
    topology_declared = models.BooleanField(default=False, db_default=False)  # by its owner, not its driver
    topology_warning = models.CharField(max_length=500, blank=True, default="", db_default="")
    # of its links by level (`LinkSpeed`), as it measured them, or why it could not
    link_speeds = models.JSONField(default=list, db_default=models.Value([], models.JSONField()))
    link_problem = models.CharField(max_length=500, blank=True, default="", db_default="")
    # the newest facts while they name other GPUs than its rows; an administrator may take them over
    other_facts = models.JSONField(null=True)
    enrolled_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()
    declines = models.JSONField(default=list)  # times of recent declined starts, seconds since the epoch
    removed_at = models.DateTimeField(null=True, blank=True)

    objects = models.Manager["Node"]()
    present = PresentNodes()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["name"], condition=Q(removed_at__isnull=True), name="one_present_node_per_name"
            ),
            models.CheckConstraint(
                condition=Q(removed_at__isnull=True) | Q(state__in=sorted(REMOVABLE)),
                name="removed_node_gets_no_work",
            ),
        ]

    @property
    def events(self) -> models.QuerySet[Event]:
        """What happened to it, oldest first."""
        return history(self.pk)

    @property
    def public_reason(self) -> str:
        """The reason of its state as everyone may read it.

        Declines and reports tell of jobs and folders.
        """
        if self.block_kind == Block.DECLINES:
            return "It declined several starts; administrators see why."
        if self.block_kind == Block.LIES:
            return "It reported what cannot be; administrators see what."
        return self.reason

    def __str__(self) -> str:
        return self.name


class Gpu(models.Model):
    """A GPU, or a slot of a CPU node (model `cpu`).

    `uuid` is what its node says of it, `device` the same while no other node may offer it. A GPU that its
    node lost for good keeps its row, for the history of jobs; `node.gpus` are those that it has.
    """

    node = models.ForeignKey(Node, models.CASCADE, related_name="gpus")
    index = models.IntegerField()
    model = models.CharField(max_length=100)
    memory_bytes = models.BigIntegerField()
    uuid = models.CharField(max_length=100, blank=True)
    device = models.CharField(max_length=100, null=True, unique=True)
    peak_flops = models.FloatField(null=True)
    bandwidth_bytes_s = models.FloatField(null=True)
    links = models.JSONField(default=dict)
    site = models.JSONField(null=True)  # as `placed` reads it; null: it is unknown where it sits
    util = models.FloatField(null=True)
    memory_used_bytes = models.BigIntegerField(null=True)
    since = models.DateTimeField(null=True, blank=True)  # null: since its node joined
    gone_at = models.DateTimeField(null=True, blank=True)

    objects = models.Manager["Gpu"]()
    in_place = InPlaceGpus()
    present = PresentGpus()

    class Meta:
        ordering = ["node", "index"]
        default_manager_name = "in_place"
        constraints = [
            models.UniqueConstraint(
                fields=["node", "index"], condition=Q(gone_at__isnull=True), name="one_gpu_per_index"
            )
        ]

    @property
    def placed(self) -> GpuSite | None:
        """Where it sits in its node; None if that is unknown."""
        return self.place(self.site)

    @staticmethod
    def place(site: dict[str, Any] | None) -> GpuSite | None:
        """The value of the column `site`."""
        return GpuSite(**site) if site else None

    def __str__(self) -> str:
        return f"{self.node_id}/{self.index}"


class NodePrice(models.Model):
    """The price of a GPU hour on a node, from `since` until the next row.

    Rows are only ever added.

    estimated: carried back to the node's beginning when prices were not yet kept.
    """

    node = models.ForeignKey(Node, models.CASCADE, related_name="prices")
    since = models.DateTimeField()
    price_per_gpu_hour = models.FloatField()  # 0: no price from then on
    estimated = models.BooleanField(default=False, db_default=False)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.CheckConstraint(condition=Q(price_per_gpu_hour__gte=0), name="price_not_below_0")
        ]

    def __str__(self) -> str:
        return f"{self.node_id} {self.price_per_gpu_hour:g} since {self.since}"


class NodeSpeedTest(models.Model):
    """The newest speed test of one model of GPU on a node (docs/adr/0043).

    Its figures are those of the executions, which are of the last test that gave some; `problem` is of a
    newer one that gave none.
    """

    node = models.ForeignKey(Node, models.CASCADE, related_name="speed_tests")
    gpu_model = models.CharField(max_length=100)
    test = models.CharField(max_length=64)  # the agent's name for it
    at = models.DateTimeField()
    executions = models.ManyToManyField("knowledge.Execution", related_name="+")
    measured_at = models.DateTimeField(null=True)
    busy_cores = models.FloatField(null=True)  # that other processes kept busy meanwhile
    problem = models.CharField(max_length=500, blank=True)

    class Meta:
        ordering = ["node", "gpu_model"]
        constraints = [
            models.UniqueConstraint(fields=["node", "gpu_model"], name="one_speed_test_per_gpu_model")
        ]

    def __str__(self) -> str:
        return f"{self.node_id} {self.gpu_model}"

    @property
    def startup_s(self) -> float | None:
        """Start-up seconds, which the first of its trainings has for all."""
        return next((run.startup_s for run in self.executions.all() if run.startup_s), None)


class JoinToken(models.Model):
    """A short-lived permission to enrol; only its digest is kept."""

    token_hash = models.CharField(max_length=64, unique=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    uses_left = models.IntegerField(default=1)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(uses_left__gte=0), name="join_token_uses")]

    def __str__(self) -> str:
        return f"join token {self.pk}"
