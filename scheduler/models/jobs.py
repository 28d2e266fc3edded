"""Jobs, attempts, claims and allocations."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.urls import reverse
from django.utils.functional import cached_property

from knowledge.core.domain.option_json import read_option
from knowledge.core.domain.types import Interval, Option
from portal.events.models import Event
from portal.events.selectors import history
from scheduler.core.measured import Measured
from scheduler.core.remaining_time import Remaining
from scheduler.core.types import Topology
from scheduler.models.arrays import JobArray
from scheduler.models.files import DatasetFile
from scheduler.models.ids import new_job_id
from scheduler.models.indexes import NullsLastIndex, PairsIndex
from scheduler.models.nodes import Gpu, Node
from scheduler.states import JobState, PriorityClass, is_preempting
from trainer.protocol import Outcome, Phase
from trainer.recipes import DEFAULT_RECIPE


class Job(models.Model):
    """A submitted job.

    Only services.jobs.transitions changes state, version, stop_for and fence.
    """

    id = models.CharField(primary_key=True, max_length=40, default=new_job_id, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="jobs")
    # The name of the API token that submitted it; empty: a person did, on a page.
    submitted_by_token = models.CharField(max_length=100, blank=True, default="", db_default="")
    team = models.ForeignKey("accounts.Team", models.SET_NULL, null=True, blank=True, related_name="jobs")
    name = models.CharField(max_length=200, blank=True)
    recipe = models.CharField(max_length=20, default=DEFAULT_RECIPE.name)
    model = models.CharField(max_length=300)
    training_file = models.ForeignKey(DatasetFile, models.PROTECT, related_name="jobs")
    validation_file = models.ForeignKey(DatasetFile, models.PROTECT, null=True, blank=True, related_name="+")
    goal = models.CharField(max_length=20, default="balanced")
    deadline_at = models.DateTimeField(null=True, blank=True)
    array = models.ForeignKey(JobArray, models.SET_NULL, null=True, blank=True, related_name="jobs")
    begin_at = models.DateTimeField(null=True, blank=True)  # it may not start before
    priority = models.IntegerField(
        default=0, db_default=0, choices=[(one.value, one.word) for one in PriorityClass]
    )
    held_at = models.DateTimeField(null=True, blank=True)  # since when an administrator holds it
    held_note = models.CharField(max_length=300, blank=True, default="", db_default="")
    front_at = models.DateTimeField(null=True, blank=True)  # since when it goes first in its class
    preemptible = models.BooleanField(default=True, db_default=True)  # may it be stopped for other jobs?
    max_run_s = models.IntegerField(null=True, blank=True)  # of all its attempts together; null: any
    topology = models.CharField(
        max_length=11,
        default=Topology.AUTOMATIC,
        db_default=Topology.AUTOMATIC,
        choices=[(one.value, one.value) for one in Topology],
    )
    topology_level = models.IntegerField(null=True, blank=True)  # TopologyLevel, where one is asked for
    spot = models.BooleanField(default=False, db_default=False)  # may it run on spot nodes?
    budget = models.FloatField(null=True, blank=True)
    retries = models.IntegerField(default=0)  # the user's own, for errors of data or code
    metadata = models.JSONField(default=dict, db_default={}, blank=True)  # the owner's texts by key

    state = models.CharField(
        max_length=10, default=JobState.QUEUED, choices=[(s.value, s.value) for s in JobState]
    )
    stop_for = models.CharField(max_length=10, blank=True)
    stop_grace_s = models.FloatField(null=True, blank=True)
    version = models.IntegerField(default=0)  # equals the number of events
    fence = models.IntegerField(default=0)  # the last one given to an attempt
    state_since = models.DateTimeField()
    shown_since = models.DateTimeField(null=True)  # of the state that people see; null: state_since
    waited_s = models.FloatField(default=0.0, db_default=0.0)  # shown as queued, up to state_since
    submitted_at = models.DateTimeField()
    first_started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    failure_class = models.CharField(max_length=10, blank=True)  # user | resource | system
    failure_reason = models.TextField(blank=True)
    failure_code = models.CharField(max_length=20, blank=True, default="", db_default="")  # FailureCode

    params = models.JSONField(default=dict)  # bound at submit: values that change what is learnt
    fixed = models.JSONField(default=dict)  # what the user fixed
    chosen = models.JSONField(default=dict)  # field -> {value, by, reason}
    promise = models.JSONField(null=True, blank=True)  # as `promised` reads it
    evidence = models.JSONField(default=list)
    notes = models.JSONField(default=list)
    predictor_version = models.IntegerField(null=True, blank=True)
    options = models.JSONField(default=list)
    options_for = models.CharField(max_length=64, blank=True)  # inventory and predictor they were made for
    binding = models.JSONField(null=True, blank=True)  # the option it ran with and prefers when it runs again
    less_memory_than = models.FloatField(null=True, blank=True)  # after running out of memory

    wait_code = models.CharField(max_length=40, blank=True)
    wait_text = models.CharField(max_length=500, blank=True)
    errors_used = models.IntegerField(default=0)
    oom_used = models.IntegerField(default=0)
    infrastructure_used = models.IntegerField(default=0)

    step = models.IntegerField(default=0)
    total_steps = models.IntegerField(null=True, blank=True)
    loss = models.FloatField(null=True, blank=True)
    tokens_per_second = models.FloatField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["state", "submitted_at"], name="job_queue"),
            models.Index(fields=["owner", "-id"], name="job_of_owner"),
            # Rows are wide; the columns that analytics reads of a period lie in the index itself.
            models.Index(
                fields=["ended_at"],
                include=["state", "submitted_at", "owner", "team", "failure_class"],
                name="job_ended",
            ),
            # Of lists: newest, last ended and last changed first, and by what they are narrowed down to.
            models.Index(fields=["submitted_at", "id"], name="job_submitted"),
            NullsLastIndex("ended_at", name="job_last_ended"),
            models.Index(fields=["shown_since", "id"], name="job_first_changed"),
            NullsLastIndex("shown_since", name="job_last_changed"),
            models.Index(fields=["model"], name="job_of_model"),
            models.Index(fields=["name"], name="job_of_name"),
            PairsIndex("metadata", name="job_metadata"),
            models.Index(
                fields=["first_started_at"], include=["waited_s", "owner", "team"], name="job_started"
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(state=JobState.STOPPING) | Q(stop_for=""), name="stop_for_only_while_stopping"
            )
        ]

    def __str__(self) -> str:
        return self.name or self.id

    def get_absolute_url(self) -> str:
        return reverse("job", args=[self.pk])

    @property
    def events(self) -> models.QuerySet[Event]:
        """What happened to it, oldest first."""
        return history(self.pk)

    @property
    def priority_class(self) -> str:
        """The class in a word."""
        return PriorityClass(self.priority).word

    @property
    def preempting(self) -> bool:
        """Does it leave its GPUs to another job, or move?"""
        return is_preempting(self.state, self.stop_for)

    @property
    def promised(self) -> Option | None:
        """The best option as promised at submit; None where nothing could be."""
        return read_option(self.promise) if self.promise else None


class Attempt(models.Model):
    """One try of a job. Live until `ended_at` and `outcome` are set."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    job = models.ForeignKey(Job, models.CASCADE, related_name="attempts")
    fence = models.IntegerField()
    option = models.JSONField()  # as `promised` reads it
    resume_step = models.IntegerField(default=0)
    resume_from = models.ForeignKey(
        "scheduler.Checkpoint", models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField()
    stops_at = models.DateTimeField(null=True, blank=True)  # when its job has run for as long as it may
    # In the queue of its node's own engine, where that has one; null: it has not begun, as far as is known.
    queued_s = models.FloatField(null=True, default=0.0, db_default=0.0)
    running_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    outcome = models.CharField(max_length=10, blank=True, choices=[(o.value, o.value) for o in Outcome])
    reason = models.TextField(blank=True)
    pending_outcome = models.CharField(max_length=10, blank=True)  # a gang whose first bad end stops the rest
    pending_reason = models.TextField(blank=True)
    pending_since = models.DateTimeField(null=True, blank=True)
    # The job that was given its GPUs by preemption; itself if it was moved or resized.
    stopped_for = models.ForeignKey(Job, models.SET_NULL, null=True, blank=True, related_name="+")
    measured = models.JSONField(default=dict)  # as `figures` reads it
    rendezvous = models.CharField(max_length=260, blank=True, default="", db_default="")  # HOST:PORT
    # How close its GPUs lie (TopologyLevel), and how close was asked for; null: that is unknown, or one each.
    link_level = models.IntegerField(null=True, blank=True)
    asked_level = models.IntegerField(null=True, blank=True)
    # The promise again, once the trainer has counted tokens. The column has the name of the first release.
    prediction = models.JSONField(null=True, blank=True, db_column="forecast")
    peak_memory_bytes = models.BigIntegerField(null=True, blank=True)
    progress = models.JSONField(null=True, blank=True)  # as `remaining` reads it
    warnings = models.JSONField(default=list, db_default=[])  # [{code, since}], as long as they hold

    class Meta:
        ordering = ["fence"]
        indexes = [models.Index(fields=["ended_at"], include=["job", "outcome"], name="attempt_ended")]
        constraints = [
            models.UniqueConstraint(fields=["job", "fence"], name="one_attempt_per_fence"),
            models.UniqueConstraint(
                fields=["job"], condition=Q(ended_at__isnull=True), name="one_live_attempt_per_job"
            ),
            models.CheckConstraint(
                condition=Q(ended_at__isnull=True, outcome="") | (Q(ended_at__isnull=False) & ~Q(outcome="")),
                name="ended_with_an_outcome",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.job_id}#{self.fence}"

    @property
    def begun_at(self) -> datetime | None:
        """When it began; None before that.

        It is its start, unless it waited in an engine's queue first.
        """
        return None if self.queued_s is None else self.created_at + timedelta(seconds=self.queued_s)

    def lasted_s(self, until: datetime) -> float:
        """Return the seconds since it began, to its end, or to `until` while it is live."""
        return 0.0 if self.begun_at is None else ((self.ended_at or until) - self.begun_at).total_seconds()

    @cached_property
    def promised(self) -> Option:
        """The configuration of this attempt and its promise; an attempt keeps them."""
        return read_option(self.option)

    @property
    def figures(self) -> Measured:
        """Measured figures of this attempt."""
        return Measured.from_json(self.measured)

    @property
    def remaining(self) -> Remaining | None:
        """The work that the attempt has left; None if that is unknown.

        It is if an earlier release started it and nothing was reported since.
        """
        return Remaining.from_json(self.progress) if self.progress else None

    def left(self, now: datetime) -> Interval | None:
        """The time until it ends, in s; None if that is unknown.

        Before it began, all its work is left.
        """
        remaining = self.remaining
        if remaining is None:
            return None
        return remaining.left(remaining.heard_at if self.begun_at is None else now.timestamp())


class Claim(models.Model):
    """One node's share of an attempt.

    started: its process ran at least for a moment.
    queued_at, began_at: when it came into the queue of its node's engine and when it left that to begin;
    both null where the node has none. engine_reason: why it waits there, in the engine's words.
    prepared_at: when it last reported more rows made ready for its first step.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    attempt = models.ForeignKey(Attempt, models.CASCADE, related_name="claims")
    node = models.ForeignKey(Node, models.PROTECT, related_name="claims")
    rank = models.IntegerField(default=0)
    phase = models.CharField(
        max_length=10, default=Phase.ASSIGNED, choices=[(p.value, p.value) for p in Phase]
    )
    started = models.BooleanField(default=False)
    queued_at = models.DateTimeField(null=True, blank=True)
    began_at = models.DateTimeField(null=True, blank=True)
    engine_reason = models.CharField(max_length=300, blank=True, default="", db_default="")
    outcome = models.CharField(max_length=10, blank=True)
    exit_code = models.IntegerField(null=True, blank=True)
    acked_seq = models.IntegerField(default=0)
    log_bytes = models.BigIntegerField(default=0)  # that are kept
    log_left_out_bytes = models.BigIntegerField(default=0, db_default=0)
    prepared_rows = models.BigIntegerField(default=0, db_default=0)
    prepared_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["rank"]
        constraints = [
            models.UniqueConstraint(fields=["attempt", "rank"], name="one_claim_per_rank"),
            models.UniqueConstraint(fields=["attempt", "node"], name="one_claim_per_node"),
        ]

    def __str__(self) -> str:
        return str(self.pk)


class Allocation(models.Model):
    """One GPU held by one claim for a time; open while `released_at` is null."""

    claim = models.ForeignKey(Claim, models.CASCADE, related_name="allocations")
    gpu = models.ForeignKey(Gpu, models.PROTECT, related_name="allocations")
    allocated_at = models.DateTimeField()
    released_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["allocated_at"], name="allocation_began"),
            models.Index(fields=["released_at"], name="allocation_ended"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["gpu"], condition=Q(released_at__isnull=True), name="one_holder_per_gpu"
            )
        ]

    def __str__(self) -> str:
        return f"{self.claim_id} on {self.gpu_id}"
