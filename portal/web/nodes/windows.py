"""Maintenance windows and reservations: a calendar, and a form for administrators."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from portal.accounts.requests import PageRequest
from portal.clock import database_now
from portal.web.charts.windows import windows_chart
from portal.web.common.access import refuse_others_than_admins
from portal.web.common.refusals import or_404
from portal.web.common.time_fields import MomentField, TimedForm
from scheduler.errors import BadParameters
from scheduler.selectors.cluster.windows import (
    get_window,
    known_teams,
    nodes_to_close,
    team_shown,
    teams_to_reserve_for,
    windows_until_now,
)
from scheduler.services.windows import LONGEST_NOTE, WindowValues, add_window, remove_window

SHOWN = 200


class WindowForm(TimedForm):
    prefix_id = "window"
    begins_at = MomentField(label="From")
    ends_at = MomentField(label="Until")
    nodes = forms.MultipleChoiceField(
        label="Nodes", help_text="Choose several with Ctrl or Shift.", widget=forms.SelectMultiple
    )
    team = forms.ChoiceField(
        required=False, label="Reserved for", help_text="Jobs of other teams leave before it begins."
    )
    note = forms.CharField(
        max_length=LONGEST_NOTE, required=False, help_text="Shown to owners of jobs that wait because of it."
    )

    def computed_fields(self) -> dict[str, forms.Field]:
        nodes: Any = self.fields["nodes"]
        nodes.choices = nodes_to_close()
        nodes.widget.attrs["size"] = min(8, max(2, len(nodes.choices)))
        team: Any = self.fields["team"]
        names = ((name, name) for name in teams_to_reserve_for())
        team.choices = [("", "nobody (maintenance)"), *names]
        return super().computed_fields()

    @property
    def values(self) -> WindowValues:
        given = dict(self.cleaned_data)
        given.pop("time_zone")
        return WindowValues(**given)


@login_required
@require_http_methods(["GET", "POST"])
def window_list(request: PageRequest) -> HttpResponse:
    """The windows that have not ended; administrators add one."""
    form = None
    if request.method == "POST":
        refuse_others_than_admins(request)
        form = WindowForm(request.POST)
        if form.is_valid() and _added(request, form):
            return redirect("windows")
    now = database_now()
    windows = list(windows_until_now(now)[:SHOWN])
    known = known_teams(request.user)
    teams = {window.pk: team_shown(window, known) for window in windows}
    context = {
        "windows": [(window, teams[window.pk]) for window in windows],
        "now": now,
        "chart": windows_chart(windows, teams, now) if windows else None,
        "form": (form or WindowForm()) if request.user.is_admin else None,
    }
    return render(request, "nodes/windows.html", context, status=400 if form else 200)


def _added(request: PageRequest, form: WindowForm) -> bool:
    try:
        add_window(values=form.values, actor=request.user, now=database_now())
    except BadParameters as wrong:
        form.take(wrong.fields)
        return False
    messages.success(request, "The window was added; jobs that would reach into it start elsewhere.")
    return True


@login_required
@require_POST
def remove(request: PageRequest, window_id: int) -> HttpResponse:
    refuse_others_than_admins(request)
    remove_window(window=or_404(get_window, window_id), actor=request.user, now=database_now())
    return redirect("windows")
