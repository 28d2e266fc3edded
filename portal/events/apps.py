"""The Django application of the stream of events."""

from __future__ import annotations

from django.apps import AppConfig


class EventsConfig(AppConfig):
    name = "portal.events"
    default_auto_field = "django.db.models.BigAutoField"
