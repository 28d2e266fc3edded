"""The page of a new job, with the recommendation beside it."""

from __future__ import annotations

import hashlib
import json
import logging
from functools import partial
from typing import Any, BinaryIO, cast

from django.contrib.auth.decorators import login_required
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from knowledge.core import catalog
from portal.accounts.requests import PageRequest
from portal.web.forms import PREFIX, SubmitForm
from scheduler.errors import BadFile, BadParameters, Conflict, FileTooLarge, KeyInUse, KeyReused
from scheduler.models import DatasetFile, Job
from scheduler.selectors.jobs import get_job
from scheduler.services.advice import recommend
from scheduler.services.files import store_file
from scheduler.services.idempotency import once
from scheduler.services.jobs import submit_job

log = logging.getLogger(__name__)


@login_required
@require_http_methods(["GET", "POST"])
def new_job(request: PageRequest) -> HttpResponse:
    """Fill in, submit, and go to the job's page."""
    form = SubmitForm(request.POST or None, request.FILES or None, user=request.user)
    if request.method == "POST" and form.is_valid() and (job := _submitted(request, form)):
        return redirect(job)
    status = 400 if form.is_bound else 200
    return render(request, "jobs/new.html", _context(form), status=status)


def _context(form: SubmitForm) -> dict[str, Any]:
    opened = any(name.startswith(PREFIX) for name in form.errors) if form.is_bound else False
    return {"form": form, "models": catalog.model_names(), "parameters_open": opened}


def _submitted(request: PageRequest, form: SubmitForm) -> Job | None:
    """The job, or None with the reasons in the form."""
    values = form.cleaned_data
    _note_extra_fields(request, form)
    key = values["key"] or form.fields["key"].initial
    body = {name: str(value) for name, value in request.POST.items() if name != "csrfmiddlewaretoken"}
    try:
        job, _ = once(
            owner=request.user,
            route="form",
            key=key,
            body_digest=hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest(),
            now=timezone.now(),
            create=lambda finish: _create(request, form, finish),
            load=partial(get_job, request.user),
        )
    except BadParameters as wrong:
        form.take(wrong.fields)
    except BadFile as wrong:
        for line, message in wrong.lines:
            form.add_error("upload", f"line {line}: {message}" if line else message)
    except FileTooLarge as wrong:
        form.add_error("upload", str(wrong))
    except (KeyReused, KeyInUse, Conflict):
        form.add_error(None, "This form was sent before with other values. Open a new one to submit again.")
    else:
        return job
    return None


def _create(request: PageRequest, form: SubmitForm, finish: Any) -> Job:
    values = form.cleaned_data
    return submit_job(
        owner=request.user,
        model=values["model"],
        training_file=_training_file(request, values),
        params=form.params,
        goal=values["goal"] or "balanced",
        name=values["name"],
        now=timezone.now(),
        on_created=finish,
    )


def _training_file(request: PageRequest, values: dict[str, Any]) -> DatasetFile:
    upload = values.get("upload")
    if upload is None:
        chosen: DatasetFile = values["training_file"]
        return chosen
    return _stored(request, upload)


def _stored(request: PageRequest, file: UploadedFile[Any]) -> DatasetFile:
    stream = cast(BinaryIO, file.file)
    return store_file(owner=request.user, stream=stream, filename=file.name or "", now=timezone.now())


def _note_extra_fields(request: PageRequest, form: SubmitForm) -> None:
    extra = [name for name in request.POST if name not in form.fields and name != "csrfmiddlewaretoken"]
    if extra:
        log.warning(
            "unknown form fields ignored: %s", ", ".join(extra)[:200], extra={"user": request.user.pk}
        )


@login_required
@require_POST
def upload(request: PageRequest) -> HttpResponse:
    """Take a file as soon as it is chosen, and answer with the file field showing it or what is wrong."""
    errors: list[str] = []
    stored = None
    file = request.FILES.get("upload")
    if file is not None:
        try:
            stored = _stored(request, file)
        except BadFile as wrong:
            errors = [f"line {line}: {message}" if line else message for line, message in wrong.lines]
        except FileTooLarge as wrong:
            errors = [str(wrong)]
    form = SubmitForm(user=request.user, initial={"training_file": stored})
    return render(request, "jobs/file_field.html", {"form": form, "stored": stored, "file_errors": errors})


@login_required
@require_GET
def advice(request: PageRequest) -> HttpResponse:
    """What would be recommended for the form as it is now: a fragment, asked for on every change."""
    form = SubmitForm(request.GET, user=request.user)
    form.is_valid()
    model, file = form.cleaned_data.get("model"), form.cleaned_data.get("training_file")
    context: dict[str, Any] = {}
    if model and file:
        try:
            found = recommend(
                model=model,
                training_file=file,
                params=form.params,
                goal=form.cleaned_data.get("goal") or "balanced",
            )
            context = {"advice": found, "best": found.best, "others": found.options[1:4]}
        except BadParameters as wrong:
            context = {"problems": wrong.fields}
    return render(request, "jobs/advice.html", context)
