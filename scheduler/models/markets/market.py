"""Markets of rented nodes, and their prices and availability over time."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from scheduler.core.market.types import NodeTerms


class SampleSource(models.TextChoices):
    """Where a sample comes from."""

    AGENT = "agent"  # nodes that joined were counted, or the provisioner answered
    IMPORT = "import"
    API = "api"


class Market(models.Model):
    """A place where nodes of one kind can be had on spot and on demand.

    Prices are per GPU hour, in the portal's currency.

    changeover_s: from asking for a node until a job runs on it.
    mix: a job over several nodes may be on spot and on-demand nodes at once.
    quiet_until: its provisioner failed and is not asked before.
    """

    name = models.CharField(max_length=100, unique=True)
    gpu_model = models.CharField(max_length=100)
    gpus_per_node = models.IntegerField(default=1)
    on_demand_price = models.FloatField()
    max_nodes = models.IntegerField(default=1)
    provisioner = models.CharField(max_length=50, blank=True)  # a name of PROVISIONERS; empty: none
    changeover_s = models.FloatField(default=120.0)
    mix = models.BooleanField(default=False)
    replays = models.CharField(max_length=200, blank=True)  # the recorded trace that it plays; empty: real
    asked_at = models.DateTimeField(null=True, blank=True)  # when its provisioner was last asked
    quiet_until = models.DateTimeField(null=True, blank=True)
    problem = models.CharField(max_length=500, blank=True)  # of the provisioner; empty: none
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(condition=Q(on_demand_price__gt=0), name="on_demand_price_above_0"),
            models.CheckConstraint(condition=Q(max_nodes__gte=0), name="most_nodes_not_below_0"),
        ]

    def __str__(self) -> str:
        return self.name


class MarketOrder(models.Model):
    """How many nodes of one kind are wanted, and what the provisioner said.

    accepted: how many it said are there or will come; since when that is more than have joined.
    """

    market = models.ForeignKey(Market, models.CASCADE, related_name="orders")
    kind = models.CharField(max_length=10, choices=[(kind.value, kind.value) for kind in NodeTerms])
    nodes = models.IntegerField(default=0)
    changed_at = models.DateTimeField()
    accepted = models.IntegerField(default=0)
    short_since = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["market", "kind"]
        constraints = [models.UniqueConstraint(fields=["market", "kind"], name="one_order_per_kind")]

    def __str__(self) -> str:
        return f"{self.market_id}: {self.nodes} {self.kind}"


class MarketSample(models.Model):
    """Price and availability of spot nodes at one moment; null is unknown."""

    market = models.ForeignKey(Market, models.CASCADE, related_name="samples")
    at = models.DateTimeField()
    price = models.FloatField(null=True, blank=True)  # per GPU hour
    available = models.IntegerField(null=True, blank=True)  # spot nodes, those that are held included
    source = models.CharField(max_length=10, choices=SampleSource.choices)

    class Meta:
        ordering = ["at", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["market", "at", "source"], name="one_sample_per_time_and_source"),
            models.CheckConstraint(condition=Q(price__isnull=True) | Q(price__gte=0), name="sample_price"),
            models.CheckConstraint(
                condition=Q(available__isnull=True) | Q(available__gte=0), name="sample_availability"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.market_id} at {self.at}"


class MarketForecast(models.Model):
    """One method's forecast of a market, and the value that came.

    horizon: market periods ahead. actual_*: as seen at that time; null while it lies ahead or is unknown.
    """

    market = models.ForeignKey(Market, models.CASCADE, related_name="forecasts")
    made_at = models.DateTimeField()
    at = models.DateTimeField()
    horizon = models.IntegerField()
    method = models.CharField(max_length=30)
    price = models.FloatField(null=True, blank=True)
    available = models.IntegerField(null=True, blank=True)
    actual_price = models.FloatField(null=True, blank=True)
    actual_available = models.IntegerField(null=True, blank=True)
    judged = models.BooleanField(default=False)

    class Meta:
        ordering = ["made_at", "horizon", "method"]
        indexes = [models.Index(fields=["market", "horizon", "-made_at"], name="forecasts_of_a_horizon")]
        constraints = [
            models.UniqueConstraint(
                fields=["market", "made_at", "horizon", "method"], name="one_forecast_per_method"
            )
        ]

    def __str__(self) -> str:
        return f"{self.market_id} +{self.horizon} by {self.method}"
