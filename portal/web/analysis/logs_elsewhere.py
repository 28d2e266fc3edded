"""The log of a run elsewhere: what it tells, and its speed kept as an execution."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core import signing
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from knowledge.core.data.sources.table import BadCell
from knowledge.core.domain.types import Config
from knowledge.language.consent import server_for
from knowledge.log_formats.kept import read_with_formats
from knowledge.reading.logs.elsewhere import LogElsewhere, UnreadableLog, text_of
from knowledge.selectors import execution_of_log
from knowledge.services import confirm_log, record_log
from portal.accounts.requests import PageRequest
from portal.clock import database_now
from portal.limits.bodies import LOGS, takes_files
from portal.web.common.access import refuse_others_than_admins
from portal.web.common.form_base import NameField, StyledForm
from portal.web.common.number_fields import WholeNumberField
from scheduler import hints
from trainer.recipes import PARAMS

SALT, VALID_S = "log-elsewhere", 3600
TUNINGS = [(name, name) for name in PARAMS["tuning"].choices]
LARGEST_COUNT = 1_000_000


class LogForm(StyledForm):
    """A log as a file or as text."""

    upload = forms.FileField(required=False, label="Log file")
    text = forms.CharField(
        required=False, max_length=200_000, strip=False, label="or its lines as text",
        widget=forms.Textarea(attrs={"rows": 6, "spellcheck": "false"}),
    )  # fmt: skip

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        if not self.errors and not any(values.values()):
            self.add_error("upload", "Choose a file, or paste lines of a log.")
        return values

    @property
    def log_text(self) -> str:
        """Raises UnreadableLog."""
        file = self.cleaned_data["upload"]
        return text_of(file.read()) if file else self.cleaned_data["text"]


def _count(label: str, initial: int | None = None) -> WholeNumberField:
    return WholeNumberField(min_value=1, max_value=LARGEST_COUNT, label=label, initial=initial)


class KeepForm(StyledForm):
    """The configuration of the run, which its log does not hold."""

    prefix_id = "keep"
    model = NameField(max_length=300, label="Base model")
    tuning = forms.ChoiceField(choices=TUNINGS)
    gpu_model = NameField(max_length=100, label="GPU model")
    number_gpus = _count("GPUs", 1)
    tokens_per_sample = _count("Tokens per sample")
    per_device_batch_size = _count("Batch size per GPU")
    gradient_accumulation_steps = _count("Gradient accumulation", 1)
    log = forms.CharField(max_length=2_000, widget=forms.HiddenInput)

    @property
    def config(self) -> Config:
        values = {name: value for name, value in self.cleaned_data.items() if name not in ("log", "model")}
        return Config(model_name=self.cleaned_data["model"], **values)

    def clean_log(self) -> LogElsewhere:
        try:
            rates = signing.loads(self.cleaned_data["log"], salt=SALT, max_age=VALID_S)
        except signing.BadSignature as old:
            raise forms.ValidationError("Read the log again: it was read too long ago.") from old
        return LogElsewhere(answers={}, steps_per_s=rates[0], tokens_per_s=rates[1])


@takes_files(LOGS)
@login_required
@require_http_methods(["GET", "POST"])
def log_elsewhere(request: PageRequest) -> HttpResponse:
    """Show what a log tells; with a configuration, keep its speed."""
    if request.method == "POST" and "log" in request.POST:
        return _kept(request)
    form = LogForm(request.POST, request.FILES) if request.method == "POST" else LogForm()
    if not form.is_valid():
        return _page(request, form, status=400 if form.is_bound else 200)
    try:
        found, note = read_with_formats(request.user, form.log_text, database_now())
    except UnreadableLog as refused:
        form.add_error("upload", str(refused))
        return _page(request, form, status=400)
    if note:
        hints.read_scripts()
    rates = (found.steps_per_s, found.tokens_per_s)
    keep = KeepForm(initial={"log": signing.dumps(rates, salt=SALT)}) if any(rates) else None
    return _page(request, LogForm(), answers=found.answers, note=note, keep=keep)


def _kept(request: PageRequest) -> HttpResponse:
    keep = KeepForm(request.POST)
    if not keep.is_valid():
        return _page(request, LogForm(), keep=keep, status=400)
    config = keep.config
    rate = keep.cleaned_data["log"].rate(config.effective_batch_size * config.tokens_per_sample)
    if not rate:
        raise Http404
    try:
        row = record_log(config=config, tokens_per_second=rate, keeper=request.user, now=database_now())
    except BadCell as wrong:
        keep.take({wrong.column: f"It {wrong}." if wrong.column == "file" else str(wrong)})
        return _page(request, LogForm(), keep=keep, status=400)
    messages.info(
        request, f"Kept with {rate:,.0f} tokens/s; it is learnt from once an administrator confirms it."
    )
    return redirect("history" if request.user.is_admin and row.pk else "log-elsewhere")


def _page(request: PageRequest, form: LogForm, *, status: int = 200, **more: Any) -> HttpResponse:
    server = server_for(request.user, "reader")
    context = {"form": form, "model_host": server.host if server else "", **more}
    return render(request, "knowledge/log_elsewhere.html", context, status=status)


@login_required
@require_POST
def confirm(request: PageRequest, execution_id: int) -> HttpResponse:
    """The configuration of a kept log is right: learn from it; for administrators."""
    refuse_others_than_admins(request)
    row = execution_of_log(execution_id)
    if row is None:
        raise Http404
    confirm_log(execution=row, actor=request.user, now=database_now())
    return redirect("history")
