"""Preferences of the signed-in person.

They choose the zone of times, and whether their sentences may be exported.
"""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from portal.accounts import time_zones
from portal.accounts.people import share_sentences
from portal.accounts.requests import PageRequest
from portal.clock import database_now
from portal.web.people.forms import PreferencesForm
from portal.web.people.limits import limit_parts


@login_required
@require_http_methods(["GET", "POST"])
def preferences(request: PageRequest) -> HttpResponse:
    """The time zone, and consent to an export of sentences."""
    kept = {name: getattr(request.user, name) for name in ("time_zone", "shares_sentences")}
    form = PreferencesForm(request.POST or None, initial=kept)
    if request.method == "POST" and form.is_valid():
        zone = time_zones.named(form.cleaned_data["time_zone"])
        time_zones.choose_time_zone(user=request.user, zone=zone)
        share_sentences(user=request.user, shared=form.cleaned_data["shares_sentences"])
        messages.info(request, "Your settings are saved.")
        return redirect("preferences")
    context = {"form": form, "now": database_now(), "names": time_zones.names(), **limit_parts(request.user)}
    return render(request, "people/preferences.html", context, status=400 if form.is_bound else 200)
