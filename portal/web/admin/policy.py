"""The scheduling policy: which one decides, what it does, who chose it; administrators choose another."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from portal.accounts.requests import PageRequest
from portal.clock import database_now
from portal.web.common.access import refuse_others_than_admins
from portal.web.common.form_base import StyledForm
from scheduler.core.policies import LIVE, POLICIES
from scheduler.errors import Conflict
from scheduler.selectors.policy import current_choice, current_policy, policy_history
from scheduler.services.policy import choose_policy

SHOWN = 20


class PolicyForm(StyledForm):
    prefix_id = "policy"
    name = forms.ChoiceField(choices=[(name, name) for name in LIVE], label="Policy")
    reason = forms.CharField(max_length=500, label="Reason", help_text="Shown in the history.")
    # The choice that the administrator saw: if another one holds by now, someone else was first.
    seen = forms.IntegerField(min_value=0, max_value=2**62, widget=forms.HiddenInput)


@login_required
@require_http_methods(["GET", "POST"])
def policy(request: PageRequest) -> HttpResponse:
    """Show it to everyone; let administrators choose."""
    if request.method != "POST":
        form = PolicyForm(initial={"name": current_policy(), "seen": current_choice()})
        return render(request, "policy/page.html", _page(form))
    refuse_others_than_admins(request)
    form = PolicyForm(request.POST)
    if not form.is_valid():
        return render(request, "policy/page.html", _page(form), status=400)
    try:
        made = choose_policy(actor=request.user, now=database_now(), **form.cleaned_data)
        messages.info(request, f"{made.name} decides from now on.")
    except Conflict as meanwhile:
        messages.warning(request, str(meanwhile))
    return redirect("policy")


def _page(form: PolicyForm) -> dict[str, Any]:
    return {
        "form": form,
        "chosen": form["name"].value(),
        "current": current_policy(),
        "summary": POLICIES[current_policy()].description.summary,
        "live": [(name, POLICIES[name].description.summary) for name in LIVE],
        "simulated": [
            (name, policy.description.summary) for name, policy in POLICIES.items() if name not in LIVE
        ],
        "history": policy_history()[:SHOWN],
    }
