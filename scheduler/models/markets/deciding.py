"""How jobs with a deadline were decided on markets."""

from __future__ import annotations

from django.db import models

from scheduler.models.jobs import Job
from scheduler.models.markets.market import Market


class DeciderWeight(models.Model):
    """How much one way of deciding is trusted in a market.

    jobs: over how many ended jobs it was learnt. gain: the sum of their scaled utilities.
    """

    market = models.ForeignKey(Market, models.CASCADE, related_name="weights")
    decider = models.CharField(max_length=50)
    weight = models.FloatField()
    gain = models.FloatField(default=0.0)
    jobs = models.IntegerField(default=0)

    class Meta:
        ordering = ["-weight", "decider"]
        constraints = [models.UniqueConstraint(fields=["market", "decider"], name="one_weight_per_decider")]

    def __str__(self) -> str:
        return f"{self.market_id} {self.decider}: {self.weight:g}"


class DeciderTrial(models.Model):
    """The utility that each decider would have brought for one job.

    It teaches the weights of the market once. utilities: by decider, in money; empty: nothing was learnt.
    """

    job = models.OneToOneField(Job, models.CASCADE, related_name="decider_trial")
    market = models.ForeignKey(Market, models.CASCADE, related_name="trials")
    at = models.DateTimeField()
    utilities = models.JSONField(default=dict)

    class Meta:
        ordering = ["at", "pk"]

    def __str__(self) -> str:
        return f"{self.job_id} in {self.market_id}"


class MarketPlan(models.Model):
    """The plans of a job with a deadline when it was submitted.

    market: null where none suits it. outlooks: as `scheduler.selectors.markets.plans` reads them. note: why
    there are not three.
    """

    job = models.OneToOneField(Job, models.CASCADE, related_name="market_plan")
    market = models.ForeignKey(Market, models.SET_NULL, null=True, blank=True, related_name="plans")
    made_at = models.DateTimeField()
    outlooks = models.JSONField(default=list)
    note = models.CharField(max_length=300, blank=True)

    def __str__(self) -> str:
        return f"{self.job_id}: {self.note or 'planned'}"


class MarketDecision(models.Model):
    """How many GPUs a job was to have in one period of a market, and why.

    spent: by the job when it was decided. inputs: what the decider saw, as JSON.
    """

    job = models.ForeignKey(Job, models.CASCADE, related_name="market_decisions")
    market = models.ForeignKey(Market, models.CASCADE, related_name="decisions")
    slot = models.IntegerField()
    at = models.DateTimeField()
    spot = models.IntegerField()
    on_demand = models.IntegerField()
    decider = models.CharField(max_length=50)
    inputs = models.JSONField(default=dict)
    spent = models.FloatField(default=0.0)

    class Meta:
        ordering = ["job", "slot", "pk"]
        indexes = [models.Index(fields=["job", "slot"], name="decisions_of_a_job")]

    def __str__(self) -> str:
        return f"{self.job_id} slot {self.slot}: {self.spot} spot, {self.on_demand} on demand"
