"""Choice of the scheduling policy in Django's admin.

A new choice is added, through the service.
"""

from __future__ import annotations

from typing import Any, cast

from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from portal.accounts.admin import ReadOnly
from portal.accounts.models import User
from portal.clock import database_now
from scheduler.core.policies import LIVE, POLICIES
from scheduler.errors import Conflict
from scheduler.models import PolicyChoice
from scheduler.selectors.policy import current_choice, current_policy
from scheduler.services.policy import choose_policy


class ChoiceForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in the stubs only
    """`seen`: the choice that held when the form was opened."""

    name = forms.ChoiceField(
        choices=[(name, f"{name}: {POLICIES[name].description.summary}") for name in LIVE], label="Policy"
    )
    seen = forms.IntegerField(min_value=0, max_value=2**62, widget=forms.HiddenInput)  # noqa: TID251  # unseen

    class Meta:
        model = PolicyChoice
        fields = ["name", "reason"]


@admin.display(description="What it does")
def summary(choice: PolicyChoice) -> str:
    policy = POLICIES.get(choice.name)
    return policy.description.summary if policy else ""


class PolicyChoiceAdmin(ReadOnly):
    """Past choices to look at; a new one is added, and holds from the next tick on."""

    form = ChoiceForm
    list_display = ("name", summary, "reason", "chosen_by", "at")
    list_select_related = ("chosen_by",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {"name": current_policy(), "seen": current_choice()}

    def save_model(self, request: Any, obj: PolicyChoice, form: Any, change: bool) -> None:
        """Raises Conflict when someone else chose since the form was opened."""
        values = form.cleaned_data
        made = choose_policy(
            name=values["name"],
            reason=values["reason"],
            seen=values["seen"],
            actor=cast(User, request.user),
            now=database_now(),
        )
        obj.pk, obj.at = made.pk, made.at

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        try:
            return super().add_view(request, form_url, extra_context)
        except Conflict as meanwhile:
            messages.error(request, str(meanwhile))
            return HttpResponseRedirect(reverse("admin:scheduler_policychoice_add"))
