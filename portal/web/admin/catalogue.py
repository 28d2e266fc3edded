"""The catalogue page.

It shows the entries that administrators added, the GPUs of nodes that it lacks, and the forms
that add more.
"""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from knowledge.catalogue.hf_config_reading import CannotAdd
from knowledge.catalogue.shipped_catalogue import shipped_catalogue
from knowledge.core.domain.catalogue import GIB, GpuModel, Model
from knowledge.models import CatalogEntry
from knowledge.selectors import catalog_entries, execution_counts
from portal.accounts.requests import PageRequest
from portal.clock import database_now
from portal.web.admin.catalogue_forms import GpuForm, ModelForm
from portal.web.common.access import refuse_others_than_admins
from scheduler.errors import SchedulerError
from scheduler.selectors.cluster.inventory import unknown_gpus
from scheduler.services.deletions import delete_catalogue_entry

FORMS: dict[str, type[GpuForm] | type[ModelForm]] = {"gpu": GpuForm, "model": ModelForm}
SHOWN = 200


@login_required
@require_GET
def page(request: PageRequest) -> HttpResponse:
    """`?gpu=NAME` fills into the form what is known of that GPU."""
    refuse_others_than_admins(request)
    return _page(
        request, gpu_form=GpuForm(initial=_initial(request.GET.get("gpu", "")[:100].replace("\x00", "")))
    )


def _initial(name: str) -> dict[str, Any]:
    """Return the form's initial figures for a GPU.

    They are those of an added GPU, or the memory that nodes report of one that the catalogue lacks.
    """
    if memory := unknown_gpus().get(name):
        return {"name": name, "memory_gib": round(memory / GIB, 2)}
    entry = catalog_entries().filter(kind=CatalogEntry.Kind.GPU, name=name).first()
    if entry is None:
        return {"name": name}
    gpu, tflops, bandwidth = _sheet(GpuModel(**entry.facts))
    figures = {"memory_gib": gpu.memory_bytes / GIB, "tflops": tflops, "bandwidth_gb_s": bandwidth}
    return {"name": name, "link": gpu.link, **figures}


@login_required
@require_POST
def add(request: PageRequest, kind: str) -> HttpResponse:
    """Add a GPU or a model, or show the page again with what was wrong."""
    refuse_others_than_admins(request)
    if kind not in FORMS:
        raise Http404
    form = FORMS[kind](request.POST)
    if form.is_valid():
        try:
            entry = form.add(request.user, database_now())
            messages.info(request, f"{entry.name} is in the catalogue; predictions use it within seconds.")
            return redirect("catalogue")
        except CannotAdd as wrong:
            form.take(wrong.fields)
    return _page(request, status=400, **{f"{kind}_form": form})


@login_required
@require_POST
def delete(request: PageRequest, kind: str) -> HttpResponse:
    """Delete an added GPU or model, or say what still needs it."""
    refuse_others_than_admins(request)
    if kind not in FORMS:
        raise Http404
    name = request.POST.get("name", "")
    try:
        delete_catalogue_entry(kind=kind, name=name, actor=request.user, now=database_now())
        messages.info(request, f"{name} is no longer in the catalogue.")
    except SchedulerError as refused:
        messages.warning(request, str(refused))
    return redirect("catalogue")


def _page(request: PageRequest, *, status: int = 200, **given: Any) -> HttpResponse:
    entries = list(catalog_entries()[:SHOWN])
    counts = execution_counts(entries)
    shown = [(one, counts.get((one.kind, one.name), 0)) for one in entries]
    context = {
        "gpu_form": GpuForm(),
        "model_form": ModelForm(),
        "unknown": unknown_gpus(),
        "gpus": [(*_sheet(GpuModel(**one.facts)), runs) for one, runs in shown if one.kind == "gpu"],
        "models": [(Model(**one.facts), runs) for one, runs in shown if one.kind == "model"],
        "shipped_gpus": [gpu.gpu_model for gpu in shipped_catalogue().shipped_gpus],
        "shipped_models": [model.model_name for model in shipped_catalogue().shipped_models],
        **given,
    }
    return render(request, "knowledge/catalogue.html", context, status=status)


def _sheet(gpu: GpuModel) -> tuple[GpuModel, float, float]:
    """The GPU, its peak in TFLOP/s and its bandwidth in GB/s."""
    return gpu, (gpu.bf16_flops or 0.0) / 1e12, gpu.bandwidth_bytes_s / 1e9
