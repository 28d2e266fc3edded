"""The loop's own rows: whose turn it is, and answers given under a key."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class Epoch(models.Model):
    """The one row that makes ticks single.

    A scheduler whose number is no longer in it changes nothing.
    """

    number = models.BigIntegerField(default=0)
    busy = models.BooleanField(default=False)
    since = models.DateTimeField()
    last_tick_at = models.DateTimeField(null=True, blank=True)
    ticks = models.BigIntegerField(default=0)
    memory = models.JSONField(default=dict)  # the policy's own, under its name; and, under ORDER, whom it
    # would start first: ids of waiting jobs, as far as anybody looks; under FALLBACK, why its last decision
    # was not its own best, if it was not
    round_at = models.DateTimeField(null=True, blank=True)  # when that policy decided last
    # scheduler.core.serving.Reachability: of the web server, and of the nodes that reach it
    web_heard_at = models.DateTimeField(null=True, blank=True)
    web_since = models.DateTimeField(null=True, blank=True)
    web_earlier = models.JSONField(default=list, db_default=[])
    nodes_heard_at = models.DateTimeField(null=True, blank=True)
    nodes_since = models.DateTimeField(null=True, blank=True)
    nodes_earlier = models.JSONField(default=list, db_default=[])

    looked_s = 0.0  # no column: when its scheduler last looked at the clock, by its own

    ORDER, IN_ORDER, FALLBACK = "waiting in order", 500, "fallback"
    REACHABILITY = (
        "web_heard_at", "web_since", "web_earlier", "nodes_heard_at", "nodes_since", "nodes_earlier",
    )  # fmt: skip

    def __str__(self) -> str:
        return f"epoch {self.number}"


class WebBeat(models.Model):
    """One row: the time at which the web server last answered itself.

    It is apart from the epoch, which ticks hold locked.
    """

    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"web server at {self.at:%Y-%m-%d %H:%M:%S}"


class IdempotencyKey(models.Model):
    """A creation under a client's key.

    The same key and body give the same object again. by_retry: of a client without a key, a retry made it.
    """

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE)
    route = models.CharField(max_length=100)
    key = models.CharField(max_length=200)
    body_digest = models.CharField(max_length=64)
    object_id = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField()
    by_retry = models.BooleanField(default=False, db_default=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["owner", "route", "key"], name="one_answer_per_key")]

    def __str__(self) -> str:
        return f"{self.route} {self.key}"


class PolicyChoice(models.Model):
    """The choice of the policy that runs the cluster from then on.

    It tells who chose it and why; the newest row counts.
    """

    name = models.CharField(max_length=40)
    reason = models.CharField(max_length=500, blank=True)
    parameters = models.JSONField(default=dict, db_default={})  # that differ from the policy's defaults
    chosen_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True)
    at = models.DateTimeField()

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.name} since {self.at:%Y-%m-%d %H:%M}"
