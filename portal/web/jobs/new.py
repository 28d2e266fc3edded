"""The page of a new job, and what becomes of it when it is sent."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from functools import partial
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from knowledge.catalogue.portal_catalogue import portal_catalogue
from knowledge.language.consent import server_for
from portal.accounts.models import User
from portal.accounts.requests import PageRequest
from portal.clock import database_now
from portal.limits.bodies import TRAINING_DATA, takes_files
from portal.web.common.partials import fragment
from portal.web.common.refusals import or_404
from portal.web.jobs.forms import MORE, UPLOADS, SubmitForm
from portal.web.jobs.job import own_job
from portal.web.jobs.resubmit import as_form, mended, read_origins
from portal.web.jobs.script_import import values_of
from portal.web.jobs.uploads import REFUSALS, complaints, stored
from scheduler.errors import BadParameters, Conflict, KeyInUse, KeyReused
from scheduler.models import DatasetFile, Job, JobArray
from scheduler.selectors.figures.start_questions import as_answer, start_answer
from scheduler.selectors.jobs import get_array, get_job
from scheduler.services.forecasts.questions import ask_start
from scheduler.services.idempotency import Creation, once
from scheduler.services.jobs.arrays import submit_array
from scheduler.services.jobs.verbs import submit_job


@takes_files(TRAINING_DATA)
@login_required
@require_http_methods(["GET", "POST"])
def new_job(request: PageRequest) -> HttpResponse:
    """Fill in, submit, and go to the job's page.

    `?from=JOB` begins with that job's values, with `&remedy=1` changed so that its failure does not happen
    again, `?script=` with those that were read from a script.
    """
    like = _like(request)
    seal = request.GET.get("script", "")
    values, origins = values_of(request.user, seal)
    values["read_script"] = seal if values else ""
    if like and request.GET.get("remedy"):
        values, origins = mended(like)
    elif like:
        origins = read_origins(like, request.user)
    initial = {**(as_form(like) if like else {}), **values}
    form = SubmitForm(request.POST or None, request.FILES or None, user=request.user, initial=initial)
    form.show_origins(origins)
    if request.method == "POST" and form.is_valid() and (made := _submitted(request, form)):
        return redirect(made)
    status = 400 if form.is_bound else 200
    return render(request, "jobs/new.html", _context(form, request.user), status=status)


def _like(request: PageRequest) -> Job | None:
    """The job whose values the form begins with, if one is named."""
    like = request.GET.get("from", "").replace("\x00", "")
    if not like:
        return None
    job = own_job(request, like)
    for file in (job.training_file, job.validation_file):
        if file and file.deleted_at:
            messages.warning(request, f"{file.filename} has been deleted; choose or upload another file.")
    return job


def _context(form: SubmitForm, user: User) -> dict[str, Any]:
    catalogue = portal_catalogue()
    return {
        "form": form,
        "language_server": server_for(user, "intent"),
        "models": catalogue.every_model,
        "gpus": [gpu.gpu_model for gpu in catalogue.every_gpu],
        "more_open": form.is_used(*(name for name in MORE if name != form.needed)),
        "parameters_open": form.is_used(*(field.name for field in form.param_fields)),
    }


def _submitted(request: PageRequest, form: SubmitForm) -> Job | JobArray | None:
    """The job or the array, or None with the reasons in the form."""
    # Without empty fields, which the page may lack: it offers jobs to come after where there are any.
    body = {name: list(map(str, values)) for name, values in request.POST.lists() if any(values)}
    body.pop("csrfmiddlewaretoken", None)
    try:
        made, _ = once(
            owner=request.user,
            route="form",
            key=form.cleaned_data["key"] or form.fields["key"].initial,
            body_digest=hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest(),
            now=database_now(),
            create=partial(_create, request, form),
            load=partial(get_array if form.cleaned_data["sweep"] else get_job, request.user),
        )
    except BadParameters as wrong:
        form.take(wrong.fields)
    except KeyReused:
        form.renew_key()
        form.add_error(
            None, "This form was already submitted with other values. Submit it again for another job."
        )
    except (KeyInUse, Conflict):
        form.add_error(None, "This form is already being submitted; check your jobs in a moment.")
    else:
        return made
    return None


def _create(request: PageRequest, form: SubmitForm, creation: Creation) -> Job | JobArray:
    values = form.cleaned_data
    files = {field: _file(request, form, upload) for upload, field in UPLOADS.items()}
    who: dict[str, Any] = {"owner": request.user, "now": database_now(), "creation": creation}
    terms = {**form.terms, **files, "read": form.read}
    if each := values["sweep_values"]:
        return submit_array(values=each, limit=values["sweep_limit"], **who, **terms)
    return submit_job(**who, **terms)


@login_required
@require_POST
def ask(request: PageRequest) -> HttpResponse:
    """Ask when the job of the form would start.

    It is a fragment that asks for the answer.
    """
    form, now = SubmitForm(request.POST, user=request.user), database_now()
    shown = None
    if form.is_valid():
        with suppress(BadParameters):  # the form tells, once it is submitted
            question = ask_start(owner=request.user, now=now, **form.terms)
            shown = as_answer(question, now)
    return render(request, "jobs/recommendation/start.html", {"answer": shown})


@login_required
@require_GET
def answer(request: PageRequest, question_id: str) -> HttpResponse:
    """Answer with the start that a worker has forecast, as a fragment."""
    found = or_404(start_answer, request.user, question_id, database_now())
    return fragment(request, "jobs/recommendation/start.html", {"answer": found})


def _file(request: PageRequest, form: SubmitForm, upload: str) -> DatasetFile | None:
    """Return the file sent with the form, stored, or else the chosen one.

    Raises BadParameters.
    """
    file = form.cleaned_data.get(upload)
    if file is None:
        chosen: DatasetFile | None = form.cleaned_data[UPLOADS[upload]]
        return chosen
    try:
        return stored(request, file)
    except REFUSALS as wrong:
        raise BadParameters({upload: "; ".join(complaints(wrong))}) from wrong
