"""A policy on probation, on the page of policies."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from portal.accounts.requests import PageRequest
from portal.clock import database_now
from portal.web.common.access import refuse_others_than_admins
from portal.web.common.form_base import StyledForm
from portal.web.common.refusals import refusals_shown
from scheduler.core.policies import LIVE
from scheduler.selectors.cluster.shadow import before_and_after, compared, shadows
from scheduler.services.shadow import end_shadow, start_shadow


class ShadowForm(StyledForm):
    prefix_id = "shadow"
    name = forms.ChoiceField(choices=[(name, name) for name in LIVE], label="Policy on probation")
    reason = forms.CharField(max_length=500, label="Reason", required=False)


def shown(request: PageRequest, current: str) -> dict[str, Any]:
    """The part of the page of policies that is for administrators.

    current: the policy that decides.
    """
    if not request.user.is_admin:
        return {}
    (shadow, past), now = shadows(), database_now()
    chosen = next((one for one in past if str(one.pk) == request.GET.get("probation")), None)
    looked_at = chosen or (None if shadow else next(iter(past), None))
    others = [name for name in LIVE if name != current]
    return {
        "comparison": compared(shadow) if shadow else None,
        "past": past,
        "looked_at": compared(looked_at) if looked_at else None,
        "form": None if shadow else ShadowForm(initial={"name": others[0]}),
        "switch": before_and_after(now),
    }


@login_required
@require_POST
def start(request: PageRequest) -> HttpResponse:
    """Put a policy on probation with its default parameters."""
    refuse_others_than_admins(request)
    form = ShadowForm(request.POST)
    if not form.is_valid():
        for field, errors in form.errors.items():
            messages.warning(request, f"{form.fields[field].label}: {errors[0]}")
        return redirect("policy")
    with refusals_shown(request):
        made = start_shadow(actor=request.user, now=database_now(), **form.cleaned_data)
        messages.info(
            request, f"{made.policy} is on probation from now on; none of its decisions is carried out."
        )
    return redirect("policy")


@login_required
@require_POST
def end(request: PageRequest) -> HttpResponse:
    """End the probation."""
    refuse_others_than_admins(request)
    end_shadow(actor=request.user, now=database_now())
    return redirect("policy")
