"""Reports of a claim: progress, logs, checkpoints, results. Called under the job's lock, once a number."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db.models import F

from knowledge.core.domain.option_json import option_json
from scheduler.core.measured import FIGURES
from scheduler.errors import BadReport
from scheduler.models import Artifact, Attempt, Checkpoint, Claim, Job, LogPiece, Metric
from scheduler.services.jobs.advice import reforecast
from scheduler.services.jobs.transitions import note_job
from trainer.protocol import GONE, MAX_LOG_BYTES, File, Kind, ProtocolError, Report
from trainer.protocol_parsing import LARGEST, parse_file, storable
from trainer.strict_json import is_number

HOST_AND_PORT = re.compile(r"([A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]):[0-9]{1,5}\Z")
LARGEST_WHOLE = 2**31 - 1  # of steps, as their columns keep them
CUT_MARK = "\n[... the log was cut here: too much in one piece ...]\n"


def apply_report(*, job: Job, claim: Claim, report: Report, now: datetime) -> None:
    """Apply one report that was not seen before. Raises BadReport if its body makes no sense."""
    HANDLERS[report.kind](job, claim, report, now)


def _number(body: dict[str, Any], name: str, *, low: float = 0.0) -> float | None:
    value = body.get(name)
    if value is None:
        return None
    if not is_number(value) or not low <= value <= LARGEST:
        raise BadReport(f"{name} must be a number from {low:g} to {LARGEST:g}")
    return float(value)


def _whole(body: dict[str, Any], name: str) -> int:
    value = _number(body, name)
    if value is None or value != int(value) or value > LARGEST_WHOLE:
        raise BadReport(f"{name} must be a whole number of at most {LARGEST_WHOLE}")
    return int(value)


def _loss(body: dict[str, Any], name: str) -> float | None:
    return _number(body, name, low=-1e9)


def _start(job: Job, claim: Claim, report: Report, now: datetime) -> None:
    body, attempt = report.body, claim.attempt
    if claim.rank:
        return  # only a sign that this node trains, too
    _keep_measured(attempt, body)
    if body.get("steps_total") is None:
        return
    Job.objects.filter(pk=job.pk).update(total_steps=_whole(body, "steps_total"))
    if (row_tokens := _number(body, "row_tokens")) and not attempt.resume_step:
        took = (now - attempt.created_at).total_seconds()
        newer = reforecast(job=job, promised=attempt.promised, row_tokens=row_tokens, startup_s=took)
        attempt.forecast = option_json(newer)
        attempt.save(update_fields=["forecast"])


def _prepare(job: Job, claim: Claim, report: Report, now: datetime) -> None:
    """Only what advances counts: a start that repeats itself is not given more time."""
    del job
    rows = _whole(report.body, "rows")
    Claim.objects.filter(pk=claim.pk, prepared_rows__lt=rows).update(prepared_rows=rows, prepared_at=now)


def _step(job: Job, claim: Claim, report: Report, now: datetime) -> None:
    body = report.body
    step = _whole(body, "step")
    last = (
        Metric.objects.filter(attempt=claim.attempt).order_by("-step").values_list("step", flat=True).first()
    )
    if step < max(last or 0, claim.attempt.resume_step):
        raise BadReport(f"step {step} lies before step {last or claim.attempt.resume_step}")
    rate, loss = _number(body, "tokens_per_s"), _loss(body, "loss")
    Metric.objects.update_or_create(
        attempt=claim.attempt,
        step=step,
        defaults={
            "loss": loss,
            "tokens_per_second": rate,
            "memory_bytes": _number(body, "memory_bytes"),
            "learning_rate": _number(body, "learning_rate"),
            "at": now,
        },
    )
    _peak(claim.attempt, _number(body, "memory_bytes"))
    Job.objects.filter(pk=job.pk).update(
        step=step, loss=loss, tokens_per_second=rate, eta_s=_number(body, "eta_s")
    )


def _eval(job: Job, claim: Claim, report: Report, now: datetime) -> None:
    del job
    Metric.objects.update_or_create(
        attempt=claim.attempt,
        step=_whole(report.body, "step"),
        defaults={"eval_loss": _loss(report.body, "eval_loss"), "at": now},
    )


def _log(job: Job, claim: Claim, report: Report, now: datetime) -> None:
    del job
    text = report.body.get("text")
    if not isinstance(text, str):
        raise BadReport("text must be a text")
    text = storable(text)
    if len(text) > MAX_LOG_BYTES:
        text = text[:MAX_LOG_BYTES] + CUT_MARK
    LogPiece.objects.create(claim=claim, seq=report.seq, text=text, at=now)
    Claim.objects.filter(pk=claim.pk).update(log_bytes=F("log_bytes") + len(text.encode()))


def _memory(job: Job, claim: Claim, report: Report, now: datetime) -> None:
    del job, now
    _peak(claim.attempt, _number(report.body, "memory_bytes"))


def _peak(attempt: Attempt, memory_bytes: float | None) -> None:
    if memory_bytes and memory_bytes > (attempt.peak_memory_bytes or 0):
        attempt.peak_memory_bytes = int(memory_bytes)
        attempt.save(update_fields=["peak_memory_bytes"])


def _checkpoint(job: Job, claim: Claim, report: Report, now: datetime) -> None:
    """Register a checkpoint; one at the portal counts only if every file was received as described."""
    step, stored = _whole(report.body, "step"), report.body.get("stored")
    if stored == GONE:
        _forget_checkpoints(job, claim, step, now)
        return
    if stored not in ("portal", "node"):
        raise BadReport("stored must be portal, node or gone")
    files = _files(report.body.get("files"))
    if stored == "portal":
        _require_received(claim, step, files)
    Checkpoint.objects.get_or_create(
        attempt=claim.attempt,
        step=step,
        defaults={
            "job": job,
            "claim": claim,
            "files": [{"path": f.path, "sha256": f.sha256, "bytes": f.bytes} for f in files],
            "node": None if stored == "portal" else claim.node,
            "at": now,
        },
    )
    note_job(
        job=job, kind="checkpoint", now=now, reason=f"Checkpoint at step {step}.", data={"stored": stored}
    )


def _forget_checkpoints(job: Job, claim: Claim, step: int, now: datetime) -> None:
    """Forget checkpoints up to this step that the node alone had: it keeps them for some time only."""
    Checkpoint.objects.filter(job=job, node=claim.node, step__lte=step).delete()
    reason = f"The checkpoint at step {step} is not on {claim.node.name} any more."
    note_job(job=job, kind="checkpoint", now=now, reason=reason, data={"stored": GONE})


def _files(raw: Any) -> list[File]:
    if not isinstance(raw, list) or not raw or len(raw) > 1000:
        raise BadReport("files must be a list of 1 to 1000 files")
    try:
        return [parse_file(entry, f"files[{index}]") for index, entry in enumerate(raw)]
    except ProtocolError as wrong:
        raise BadReport(str(wrong)) from wrong


def _require_received(claim: Claim, step: int, files: list[File]) -> None:
    received = dict(Artifact.objects.filter(claim=claim).values_list("path", "sha256"))
    for file in files:
        if received.get(f"checkpoints/step-{step}/{file.path}") != file.sha256:
            raise BadReport(f"checkpoint file {file.path} was not received with that digest")


def _rendezvous(job: Job, claim: Claim, report: Report, now: datetime) -> None:
    del job, now
    address = report.body.get("address")
    if not isinstance(address, str) or not HOST_AND_PORT.match(address):
        raise BadReport("address must be HOST:PORT, an IPv6 host in brackets")
    if claim.rank == 0:
        claim.attempt.rendezvous = address
        claim.attempt.save(update_fields=["rendezvous"])


def _result(job: Job, claim: Claim, report: Report, now: datetime) -> None:
    del now
    if claim.rank:
        return
    _keep_measured(claim.attempt, report.body)
    _peak(claim.attempt, _number(report.body, "peak_memory_bytes"))
    loss = _loss(report.body, "final_loss")
    if loss is not None:
        Job.objects.filter(pk=job.pk).update(loss=loss)


def _keep_measured(attempt: Attempt, body: dict[str, Any]) -> None:
    told: dict[str, Any] = {name: _loss(body, name) for name in FIGURES if body.get(name) is not None}
    if body.get("software") is not None:
        told["software"] = _versions(body["software"])
    attempt.measured = replace(attempt.figures, **told).as_json()
    attempt.save(update_fields=["measured"])


def _versions(raw: Any) -> dict[str, str]:
    return (
        {storable(str(k))[:50]: storable(str(v))[:50] for k, v in raw.items()}
        if isinstance(raw, dict)
        else {}
    )


HANDLERS: dict[Kind, Callable[[Job, Claim, Report, datetime], None]] = {
    Kind.PREPARE: _prepare,
    Kind.START: _start,
    Kind.STEP: _step,
    Kind.EVAL: _eval,
    Kind.LOG: _log,
    Kind.MEMORY: _memory,
    Kind.CHECKPOINT: _checkpoint,
    Kind.RENDEZVOUS: _rendezvous,
    Kind.RESULT: _result,
}
