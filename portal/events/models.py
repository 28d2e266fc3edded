"""The outbox of events, and how far those have come who go through it."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from portal.events.types import PRIVATE, EventType


class Event(models.Model):
    """Something that happened to an object, written in the transaction of the change.

    `position`: in the stream, without gaps; null until the transaction is committed and one has been given.
    Whoever goes through the stream goes by positions alone: ids are drawn before the commit, and one may
    come to light after a greater one.

    `subject`: the id of the object. `number` and the columns after it are of jobs: the version that the
    event made, the states before and after it, what it stops for, and the fence.
    """

    position = models.BigIntegerField(null=True, blank=True, unique=True)
    type = models.CharField(max_length=40)
    at = models.DateTimeField()
    subject = models.CharField(max_length=40)
    number = models.IntegerField(null=True, blank=True)
    old = models.CharField(max_length=10, blank=True)
    new = models.CharField(max_length=10, blank=True)
    stop_for = models.CharField(max_length=10, blank=True)
    fence = models.IntegerField(default=0)
    reason = models.TextField(blank=True)
    data = models.JSONField(default=dict)
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True)

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["subject", "type"], name="events_of_an_object")]
        constraints = [
            models.UniqueConstraint(
                fields=["subject", "number"], condition=Q(number__isnull=False), name="one_event_per_version"
            )
        ]

    def __str__(self) -> str:
        return f"{self.subject} {self.type}"

    @property
    def words(self) -> str:
        """What happened, without the object."""
        return EventType(self.type).words

    @property
    def is_private(self) -> bool:
        """Whether its reason is for administrators alone."""
        return self.type in PRIVATE


class Cursor(models.Model):
    """How far somebody has come in the stream.

    That named `GIVEN` is the last position that was given.

    `busy_until`: while it is read by one worker, no other one reads on.
    """

    GIVEN = "given"

    name = models.CharField(max_length=40, primary_key=True)
    position = models.BigIntegerField(default=0)
    busy_until = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.name} at {self.position}"
