"""Which policy runs the cluster."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models import QuerySet

from scheduler.core.policies import POLICIES
from scheduler.core.policies.parameters import with_parameters
from scheduler.core.types import Policy
from scheduler.models import Epoch, PolicyChoice


def current_policy() -> str:
    """The name chosen last, else the setting POLICY."""
    newest = PolicyChoice.objects.values_list("name", flat=True).order_by("-id").first()
    return newest or str(settings.POLICY)


def chosen_at() -> datetime | None:
    """When the policy that holds now was chosen; None while the setting POLICY does."""
    return PolicyChoice.objects.values_list("at", flat=True).order_by("-id").first()


def current_parameters() -> dict[str, Any]:
    """The parameters that were given with the choice that holds now."""
    return PolicyChoice.objects.values_list("parameters", flat=True).order_by("-id").first() or {}


class LivePolicy(NamedTuple):
    """The policy that decides now.

    parameters: those that were given with its choice.
    """

    policy: Policy
    parameters: dict[str, Any]


def live_policy() -> LivePolicy:
    """The policy that decides now."""
    newest = PolicyChoice.objects.values_list("name", "parameters").order_by("-id").first()
    name, given = newest or (str(settings.POLICY), {})
    return LivePolicy(with_parameters(POLICIES[name], given), given)


def fallback() -> str:
    """Why the last decision was not the policy's own best answer; empty if it was."""
    memory = Epoch.objects.values_list("memory", flat=True).first() or {}
    return str(memory.get(Epoch.FALLBACK, ""))


def policy_history() -> QuerySet[PolicyChoice]:
    """All choices, newest first."""
    return PolicyChoice.objects.select_related("chosen_by").order_by("-id")


def current_choice() -> int:
    """The number of the choice that holds now; 0 while the setting POLICY does."""
    return PolicyChoice.objects.values_list("pk", flat=True).order_by("-id").first() or 0
