"""Calibrating a node from its page; for administrators."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_GET, require_POST

from portal.accounts.requests import PageRequest
from portal.clock import database_now
from portal.web.common.access import refuse_others_than_admins
from portal.web.common.partials import fragment
from portal.web.common.refusals import refusals_shown
from portal.web.nodes.calibration import CalibrationForm, calibration_panel
from portal.web.nodes.node import node_page, shown_node
from scheduler.errors import BadParameters
from scheduler.selectors.cluster.calibrations import get_calibration
from scheduler.services.calibration.request import cancel_calibration, request_calibration


@login_required
@require_GET
def panel(request: PageRequest, node_id: str) -> HttpResponse:
    """How far the calibration is: what changes while it goes on."""
    refuse_others_than_admins(request)
    node = shown_node(node_id)
    return fragment(request, "nodes/calibration.html", {"node": node, **calibration_panel(node)})


@login_required
@require_POST
def calibrate(request: PageRequest, node_id: str) -> HttpResponse:
    """Begin a calibration; then show the node again, with what was wrong."""
    refuse_others_than_admins(request)
    node, form = shown_node(node_id), CalibrationForm(request.POST)
    if form.is_valid():
        with refusals_shown(request):
            try:
                request_calibration(node=node, wanted=form.wanted, actor=request.user, now=database_now())
            except BadParameters as wrong:
                form.take(wrong.fields)
    if form.errors:
        return node_page(request, node, status=400, **calibration_panel(node, form))
    return redirect("node", node_id)


@login_required
@require_POST
def cancel(request: PageRequest, node_id: str, calibration_id: str) -> HttpResponse:
    """Call a calibration off; what it measured counts."""
    refuse_others_than_admins(request)
    with refusals_shown(request):
        found = get_calibration(shown_node(node_id), calibration_id)
        cancel_calibration(calibration=found, actor=request.user, now=database_now())
    return redirect("node", node_id)
