"""Comparisons of policies: on the own past, and on probation."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.urls import reverse

from scheduler.models.ids import new_id
from scheduler.models.jobs import Job
from scheduler.states import OPEN_SIMULATIONS, SimulationState

STATES = [(state.value, state.value.capitalize()) for state in SimulationState]


def new_simulation_id() -> str:
    return new_id("sim-")


class Simulation(models.Model):
    """One comparison of policies.

    A worker plays policy after policy under a lease; `turn` is the fence of its writes.
    """

    id = models.CharField(primary_key=True, max_length=40, default=new_simulation_id, editable=False)
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True)
    requested_at = models.DateTimeField()
    since = models.DateTimeField(null=True)  # jobs submitted in [since, until)
    until = models.DateTimeField()
    cluster = models.CharField(max_length=500)  # as the command line takes it
    as_it_was = models.BooleanField(default=False, db_default=False)  # instead: nodes as they came and went
    policies = models.JSONField()  # names, in the order in which they are played
    knowledge = models.CharField(max_length=20)
    error = models.FloatField(default=0.0)  # median error of the predictions at `performance`
    seed = models.IntegerField(default=0)
    state = models.CharField(max_length=10, choices=STATES, default=SimulationState.QUEUED)
    message = models.CharField(max_length=1000, blank=True)  # why it failed
    # scheduler.services.simulations.reproduction; null: the past was not played as it was
    reproduction = models.JSONField(null=True)
    results = models.JSONField(default=list)  # one object for each policy that was played
    refusals = models.JSONField(default=list)  # the first jobs that were left out: [job, reason]
    progress = models.FloatField(default=0.0)  # share of all policies, 0..1
    turn = models.IntegerField(default=0)
    tries = models.IntegerField(default=0)  # of the present policy
    leased_until = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["state"], condition=models.Q(state="running"), name="one_running_simulation"
            )
        ]

    def __str__(self) -> str:
        return f"{self.id} {self.state}"

    def get_absolute_url(self) -> str:
        return reverse("simulation", args=[self.pk])

    @property
    def ended(self) -> bool:
        return self.state not in OPEN_SIMULATIONS

    @property
    def left_out(self) -> int:
        """How many jobs of the range were not played; `refusals` names the first ones."""
        return int(self.results[-1].get("refused", 0)) if self.results else 0


class ShadowPolicy(models.Model):
    """A policy on probation, from the moment at which it was switched on.

    world: its occupancy and memory at `at`, as scheduler.core.shadow.state_json packs them. `turn` is the
    fence of its writes: of two workers that bring it up to date, one counts.
    """

    policy = models.CharField(max_length=40)
    parameters = models.JSONField(default=dict)  # that differ from the policy's defaults
    reason = models.CharField(max_length=500, blank=True)
    started_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    open = models.BooleanField(default=True)  # one at a time
    at = models.DateTimeField()
    world = models.BinaryField(null=True)
    turn = models.IntegerField(default=0)
    trouble = models.CharField(max_length=500, blank=True)  # why it was not brought up to date last time

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["open"], condition=models.Q(open=True), name="one_open_shadow_policy"
            )
        ]

    def __str__(self) -> str:
        return f"{self.policy} on probation since {self.started_at:%Y-%m-%d %H:%M}"


class ShadowJob(models.Model):
    """The start and end of one job under a policy on probation.

    started_at: the first time; null: it waits, or it ran already. stops: how often it was stopped or moved.
    """

    shadow = models.ForeignKey(ShadowPolicy, models.CASCADE, related_name="jobs")
    job = models.ForeignKey(Job, models.CASCADE, related_name="+")
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    stops = models.IntegerField(default=0)
    gpu_model = models.CharField(max_length=100, blank=True)  # as it was started last
    gpus = models.IntegerField(null=True)

    class Meta:
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["shadow", "job"], name="one_shadow_of_a_job")]

    def __str__(self) -> str:
        return f"{self.job_id} in the shadow"
