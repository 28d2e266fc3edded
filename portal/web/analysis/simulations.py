"""Comparisons for administrators: ask for one, and read what came out."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods

from portal.accounts.requests import PageRequest
from portal.clock import database_now
from portal.web.analysis.simulation_forms import LEVELS, SimulationForm
from portal.web.charts.simulation import jct_chart, relative_error
from portal.web.common.access import refuse_others_than_admins
from portal.web.common.partials import fragment, is_fragment
from portal.web.common.refusals import or_404
from scheduler.errors import BadParameters, Conflict, KeyInUse, KeyReused
from scheduler.models import Simulation
from scheduler.selectors.policy import current_policy
from scheduler.selectors.simulations import all_simulations, get_simulation, present_cluster
from scheduler.services.idempotency import once
from scheduler.services.simulations.request import request_simulation
from scheduler.simulator.inputs.cluster import parse_cluster
from scheduler.simulator.world.predictions import Fidelity

PAGE = 20
# (measure, heading, how it is shown): the columns of two tables, as one would be too wide for most screens
TIMES = (
    ("jobs", "Jobs", "number"),
    ("jct_mean_s", "Mean JCT", "duration"), ("jct_p50_s", "p50", "duration"),
    ("jct_p95_s", "p95", "duration"), ("jct_p99_s", "p99", "duration"),
    ("wait_mean_s", "Mean wait", "duration"), ("slowdown_mean", "Slowdown", "number"),
    ("makespan_s", "Makespan", "duration"),
)  # fmt: skip
USE = (
    ("utilisation", "Utilisation", "percent"), ("jain", "Jain", "number"),
    ("finish_time_fairness_mean", "Finish-time fairness", "number"),
    ("violation_ratio", "Late", "percent"), ("preemptions", "Preemptions", "number"),
    ("cost", "Cost", "money"),
)  # fmt: skip


@login_required
@require_http_methods(["GET", "POST"])
def simulation_list(request: PageRequest) -> HttpResponse:
    """The newest simulations and the form for another one."""
    refuse_others_than_admins(request)
    form = SimulationForm(request.POST or None)
    if request.method == "POST" and form.is_valid() and (made := _requested(request, form)):
        return redirect(made)
    page = Paginator(all_simulations(), PAGE).get_page(request.GET.get("page"))
    if is_fragment(request):
        return fragment(request, "simulations/rows.html", {"page": page})
    context = {"form": form, "page": page, "present": present_cluster()}
    return render(request, "simulations/page.html", context, status=400 if form.is_bound else 200)


def _requested(request: PageRequest, form: SimulationForm) -> Simulation | None:
    """The simulation, or None with the reasons in the form."""
    body = {name: request.POST.getlist(name) for name in request.POST if name != "csrfmiddlewaretoken"}
    try:
        made, _ = once(
            owner=request.user,
            route="simulation form",
            key=form.request_key,
            body_digest=hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest(),
            now=database_now(),
            create=lambda creation: request_simulation(
                question=form.question, actor=request.user, now=database_now(), creation=creation
            ),
            load=get_simulation,
        )
    except BadParameters as wrong:
        form.take(wrong.fields)
    except (KeyReused, KeyInUse):
        form.add_error(None, "This form was already submitted; reload the page for another simulation.")
    except Conflict as refused:
        form.add_error(None, str(refused))
    else:
        return made
    return None


@login_required
@require_GET
def simulation_detail(request: PageRequest, simulation_id: str) -> HttpResponse:
    """Request, progress and figures; for htmx the state alone while it runs."""
    refuse_others_than_admins(request)
    found = or_404(get_simulation, simulation_id)
    context: dict[str, Any] = {
        "simulation": found,
        "percent": round(100 * found.progress),
        "pools": parse_cluster(found.cluster).pools,
        "known": LEVELS.get(Fidelity(found.knowledge)),
        "tables": [_table("Times", TIMES, found), _table("Use, fairness and cost", USE, found)],
        "reproduced": _reproduced(found),
        "chart": jct_chart(found.results, in_force=current_policy(), reproduced=found.reproduction),
    }
    if is_fragment(request):
        answer = fragment(request, "simulations/live.html", context)
        if found.ended:  # the page with its chart takes over
            answer["HX-Refresh"] = "true"
        return answer
    return render(request, "simulations/detail.html", context)


def _reproduced(found: Simulation) -> list[tuple[str, float, float, str]]:
    """Return each figure's heading, real, simulated and the difference in words.

    Nothing if it is unknown.
    """
    figures = found.reproduction or {}
    real, simulated = figures.get("real", {}), figures.get("simulated", {})
    return [
        (heading, real[name], simulated[name], f"{relative_error(real[name], simulated[name]):+.1%}")
        for name, heading in (("jct_mean_s", "Mean JCT"), ("jct_p95_s", "p95 of the JCT"))
        if name in real
    ]


def _table(title: str, measures: tuple[tuple[str, str, str], ...], found: Simulation) -> dict[str, Any]:
    """Columns of the table with a row for each policy."""
    rows = [
        (result["policy"], [(result.get(name), kind) for name, _, kind in measures])
        for result in found.results
    ]
    return {"title": title, "headings": [heading for _, heading, _ in measures], "rows": rows}
