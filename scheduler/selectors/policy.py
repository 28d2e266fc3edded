"""Which policy runs the cluster."""

from __future__ import annotations

from django.conf import settings
from django.db.models import QuerySet

from scheduler.models import PolicyChoice


def current_policy() -> str:
    """The name chosen last, else the setting POLICY."""
    newest = PolicyChoice.objects.values_list("name", flat=True).order_by("-id").first()
    return newest or str(settings.POLICY)


def policy_history() -> QuerySet[PolicyChoice]:
    """All choices, newest first."""
    return PolicyChoice.objects.select_related("chosen_by").order_by("-id")


def current_choice() -> int:
    """The number of the choice that holds now; 0 while the setting POLICY does."""
    return PolicyChoice.objects.values_list("pk", flat=True).order_by("-id").first() or 0
