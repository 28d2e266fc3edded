"""The scheduling policy's page.

It shows which policy decides, what it does and who chose it; administrators choose another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from portal.accounts.requests import PageRequest
from portal.clock import database_now
from portal.web.admin import shadow
from portal.web.charts.simulation import jct_chart
from portal.web.common.access import refuse_others_than_admins
from portal.web.common.form_base import StyledForm
from portal.web.common.number_fields import NumberField, NumberList, WholeNumberField
from portal.web.common.refusals import refusals_shown
from scheduler.core.policies import LIVE, POLICIES
from scheduler.core.policies.parameters import Parameter, parameters_of, values_of
from scheduler.errors import BadParameters
from scheduler.selectors.policy import (
    current_choice,
    current_parameters,
    current_policy,
    fallback,
    live_policy,
    policy_history,
)
from scheduler.selectors.simulations import newest_comparison
from scheduler.services.policy import choose_policy

SHOWN = 20
FIRST = ("easy", "fifo", "fair", "srtf", "las", "sia")  # what most portals choose among; others are under All
COMPARED = ("easy", "fair", "lucid", "srtf", "uwfq", "las", "sia")  # docs/scheduling.md says for what


class PolicyForm(StyledForm):
    prefix_id = "policy"
    name = forms.ChoiceField(choices=[(name, name) for name in LIVE], label="Policy")
    reason = forms.CharField(max_length=500, label="Reason", help_text="Shown in the history.")
    # The choice that the administrator saw: if another one holds by now, someone else was first.
    seen = WholeNumberField(min_value=0, max_value=2**62, widget=forms.HiddenInput)

    def computed_fields(self) -> dict[str, forms.Field]:
        """One for each parameter of each policy, `POLICY.NAME`."""
        held, now = current_parameters(), current_policy()
        return {
            f"{name}.{parameter.name}": _field(parameter, held if name == now else {})
            for name in LIVE
            for parameter in parameters_of(POLICIES[name])
        }

    def clean(self) -> dict[str, Any]:
        """Forget what is wrong about policies not chosen: nobody sees their fields."""
        own = f"{self.cleaned_data.get('name')}."
        for field in [name for name in self.errors if "." in name and not name.startswith(own)]:
            del self.errors[field]
        return self.cleaned_data

    def of_policy(self, name: str) -> list[forms.BoundField]:
        """The fields of the parameters of one policy."""
        return [self[field] for field in self.fields if field.startswith(f"{name}.")]

    def choice(self) -> dict[str, Any]:
        """Return the choice that the service takes.

        Of the parameters it has those of the chosen policy that were changed.
        """
        values = self.cleaned_data
        policy = POLICIES[values["name"]]
        given = {one.name: values.get(f"{policy.name}.{one.name}") for one in parameters_of(policy)}
        changed = {
            one.name: given[one.name]
            for one in parameters_of(policy)
            if given[one.name] not in (None, "", [], one.default)
        }
        return {
            "name": policy.name,
            "reason": values["reason"],
            "seen": values["seen"],
            "parameters": changed,
        }

    def take(self, errors: Mapping[str, str]) -> None:
        """A refused parameter is named at its field of the chosen policy."""
        own = {name: name.replace("parameters.", f"{self.cleaned_data['name']}.", 1) for name in errors}
        super().take({own[name]: message for name, message in errors.items()})


def _field(parameter: Parameter, held: Mapping[str, Any]) -> forms.Field:
    about: dict[str, Any] = {
        "label": parameter.name, "help_text": parameter.help, "required": False,
        "initial": held.get(parameter.name, parameter.default),
    }  # fmt: skip
    if parameter.flag:
        return forms.BooleanField(**about)
    if parameter.many:
        return NumberList(max_length=200, **about)
    if parameter.whole:
        return WholeNumberField(min_value=int(parameter.low), max_value=int(parameter.high), **about)
    return NumberField(min_value=parameter.low, max_value=parameter.high, **about)


@login_required
@require_http_methods(["GET", "POST"])
def policy(request: PageRequest) -> HttpResponse:
    """Show it to everyone; let administrators choose."""
    if request.method != "POST":
        form = PolicyForm(initial={"name": current_policy(), "seen": current_choice()})
        return render(request, "policy/page.html", _page(request, form))
    refuse_others_than_admins(request)
    form = PolicyForm(request.POST)
    if not form.is_valid():
        return render(request, "policy/page.html", _page(request, form), status=400)
    with refusals_shown(request):
        try:
            made = choose_policy(actor=request.user, now=database_now(), **form.choice())
        except BadParameters as refused:
            form.take(refused.fields)
            return render(request, "policy/page.html", _page(request, form), status=400)
        messages.info(request, f"{made.name} is the policy from now on.")
    return redirect("policy")


def _past(current: str) -> dict[str, Any]:
    """What would have served best, by the newest comparison of the own past.

    compared: the policies that another comparison is about, which a worker plays when it is asked for.
    """
    newest = newest_comparison()
    compared = dict.fromkeys([current, *COMPARED])
    if newest is None:
        return {"compared": compared}
    chart = jct_chart(newest.results, in_force=current, reproduced=newest.reproduction)
    order = sorted(newest.results, key=lambda result: float(result["jct_mean_s"]))
    return {"compared": compared, "newest": newest, "summary": chart.summary, "results": order}


def _described(form: PolicyForm, names: Iterable[str]) -> list[tuple[str, str, list[forms.BoundField]]]:
    return [(name, POLICIES[name].description.summary, form.of_policy(name)) for name in names]


def _page(request: PageRequest, form: PolicyForm) -> dict[str, Any]:
    decides = live_policy()
    current = decides.policy.name
    return {
        "form": form,
        "chosen": form["name"].value(),
        "current": current,
        "summary": POLICIES[current].description.summary,
        "fallback": fallback(),
        "past": _past(current) if request.user.is_admin else None,
        "values": values_of(POLICIES[current], decides.parameters),
        "first": _described(form, FIRST),
        "others": _described(form, [name for name in LIVE if name not in FIRST]),
        "opened": not {current, form["name"].value()} <= set(FIRST),
        "simulated": [
            (name, policy.description.summary) for name, policy in POLICIES.items() if name not in LIVE
        ],
        "history": policy_history()[:SHOWN],
        "probation": shadow.shown(request, current),
    }
