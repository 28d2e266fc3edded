"""Reports of a claim: progress, logs, checkpoints, results.

They are applied under the job's lock, once per number.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import F

from knowledge.core.domain.option_json import option_json
from scheduler.core.measured import FIGURES
from scheduler.errors import BadReport
from scheduler.models import Artifact, Attempt, Checkpoint, Claim, Job, LogPiece, Metric
from scheduler.services.jobs.kept_checkpoints import forget_checkpoints
from scheduler.services.jobs.recommend import repredict
from scheduler.services.jobs.transitions import note_job
from scheduler.services.sync import progress
from scheduler.services.sync.warnings import warn
from scheduler.states import JobEventKind
from trainer.message_reader import LARGEST, storable
from trainer.protocol import GONE, MAX_LOG_BYTES, File, ProtocolError, Report, ReportKind
from trainer.protocol_parsing import parse_file
from trainer.step_metrics import ANY_SIGN, STEP_METRICS, StepMetric
from trainer.strict_json import is_number

HOST_AND_PORT = re.compile(r"([A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]):[0-9]{1,5}\Z")
LARGEST_WHOLE = 2**31 - 1  # of steps, as their columns keep them
MOST_SENTENCES, LONGEST_SENTENCE = 20, 1000  # of what is wrong with an output
CUT_MARK = "\n[... the log was cut here: too much in one piece ...]\n"


def apply_report(*, job: Job, claim: Claim, report: Report, now: datetime) -> None:
    """Apply one report that was not seen before.

    Raises BadReport if its body makes no sense.
    """
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
    return _number(body, name, low=ANY_SIGN)


def _start(job: Job, claim: Claim, report: Report, now: datetime) -> None:
    body, attempt = report.body, claim.attempt
    if claim.rank:
        return  # only a sign that this node trains, too
    _keep_measured(attempt, body)
    if body.get("steps_total") is None:
        return
    total_steps, promised = _whole(body, "steps_total"), attempt.promised
    job.total_steps = total_steps  # the next report of this sync may be a step
    Job.objects.filter(pk=job.pk).update(total_steps=total_steps)
    if (row_tokens := _number(body, "row_tokens")) and not attempt.resume_step:
        took = (now - attempt.created_at).total_seconds()
        promised = repredict(job=job, promised=promised, row_tokens=row_tokens, startup_s=took)
        attempt.prediction = option_json(promised)
        attempt.save(update_fields=["prediction"])
    progress.begin(attempt, promised, total_steps=total_steps, rows=_number(body, "rows"))


def _prepare(job: Job, claim: Claim, report: Report, now: datetime) -> None:
    """Note an advance; a start that repeats itself is not given more time."""
    del job
    rows = _whole(report.body, "rows")
    Claim.objects.filter(pk=claim.pk, prepared_rows__lt=rows).update(prepared_rows=rows, prepared_at=now)


def _step(job: Job, claim: Claim, report: Report, now: datetime) -> None:
    body = report.body
    step = _whole(body, "step")
    last = (
        Metric.objects.filter(attempt=claim.attempt).order_by("-step").values_list("step", flat=True).first()
    )
    if job.total_steps and step > job.total_steps:
        raise BadReport(f"step {step} lies beyond the last one, {job.total_steps}")
    if step < max(last or 0, claim.attempt.resume_step):
        raise BadReport(f"step {step} lies before step {last or claim.attempt.resume_step}")
    row = _keep_metrics(job, claim.attempt, step, body, now, evaluation=False)
    _peak(claim.attempt, row.memory_bytes)
    progress.advance(
        claim.attempt,
        step=step,
        total_steps=job.total_steps,
        step_s=_believed(body, "step_s"),
        saved_s=_believed(body, "saving_s"),
        now=now,
    )
    warn(job, claim.attempt, now)
    Job.objects.filter(pk=job.pk).update(
        step=step,
        tokens_per_second=row.tokens_per_second,
        **({} if row.loss is None else {"loss": row.loss}),
    )


def _eval(job: Job, claim: Claim, report: Report, now: datetime) -> None:
    _keep_metrics(job, claim.attempt, _whole(report.body, "step"), report.body, now, evaluation=True)
    if seconds := _believed(report.body, "evaluation_s"):
        progress.evaluated(claim.attempt, seconds=seconds, now=now)


def _keep_metrics(
    job: Job, attempt: Attempt, step: int, body: dict[str, Any], now: datetime, *, evaluation: bool
) -> Metric:
    """Write what the report says into the step's row.

    Steps and evaluations share it. A figure that cannot be is left out, and noted once an attempt: the step
    counts without it.
    """
    row = Metric.objects.filter(attempt=attempt, step=step).first() or Metric(attempt=attempt, step=step)
    for metric in STEP_METRICS:
        if metric.evaluation == evaluation:
            try:
                row.keep(metric, _metric(body, metric))
            except BadReport as wrong:
                row.keep(metric, None)
                _note_left_out(job, attempt, metric, step, str(wrong), now)
    row.at = now
    row.save()
    return row


def _metric(body: dict[str, Any], metric: StepMetric) -> float | None:
    value = _number(body, metric.name, low=metric.low)
    return int(value) if metric.whole and value is not None else value


def _note_left_out(
    job: Job, attempt: Attempt, metric: StepMetric, step: int, why: str, now: datetime
) -> None:
    """Tell the owner once that a figure is missing, and from which step on."""
    data = {"metric": metric.public_name, "fence": attempt.fence}
    if not job.events.filter(
        kind=JobEventKind.METRIC_LEFT_OUT, data__metric=metric.public_name, data__fence=attempt.fence
    ).exists():
        reason = f"The {metric.label} of step {step} is left out: {why}. Later ones like it have no note."
        note_job(job=job, kind=JobEventKind.METRIC_LEFT_OUT, now=now, reason=reason, data=data)


def _believed(body: dict[str, Any], name: str) -> float | None:
    """A figure that a forecast may do without."""
    try:
        return _number(body, name)
    except BadReport:
        return None


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
    """Register a checkpoint.

    One at the portal counts only if every file was received as described.
    """
    step, stored = _whole(report.body, "step"), report.body.get("stored")
    if stored == GONE:
        _forget_checkpoints(job, claim, step, now)
        return
    if stored not in ("portal", "node"):
        raise BadReport("stored must be portal, node or gone")
    if job.total_steps and step > job.total_steps:
        raise BadReport(f"step {step} lies beyond the last one, {job.total_steps}")
    files = _files(report.body.get("files"))
    if stored == "portal":
        _require_received(claim, step, files)
    transaction.on_commit(partial(forget_checkpoints, jobs=[job.pk], now=now), robust=True)
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
        job=job,
        kind=JobEventKind.CHECKPOINT,
        now=now,
        reason=f"Checkpoint at step {step}.",
        data={"stored": stored},
    )


def _forget_checkpoints(job: Job, claim: Claim, step: int, now: datetime) -> None:
    """Offer none of the checkpoints up to this step again that the node alone had.

    The node keeps them for some time only.
    """
    reason = f"The checkpoint at step {step} is not on {claim.node.name} any more."
    Checkpoint.objects.filter(job=job, node=claim.node, step__lte=step, fault="").update(fault=reason)
    note_job(job=job, kind=JobEventKind.CHECKPOINT, now=now, reason=reason, data={"stored": GONE})


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
    del job, now
    if claim.rank:
        return
    _keep_measured(claim.attempt, report.body)
    _peak(claim.attempt, _number(report.body, "peak_memory_bytes"))


def _keep_measured(attempt: Attempt, body: dict[str, Any]) -> None:
    figures: dict[str, Any] = {name: _loss(body, name) for name in FIGURES if body.get(name) is not None}
    if body.get("software") is not None:
        figures["software"] = _versions(body["software"])
    if warnings := _sentences(body.get("output_warnings")):
        figures["output_warnings"] = warnings
    attempt.measured = replace(attempt.figures, **figures).as_json()
    attempt.save(update_fields=["measured"])


def _sentences(raw: Any) -> tuple[str, ...]:
    texts = raw[:MOST_SENTENCES] if isinstance(raw, list) else []
    return tuple(storable(text)[:LONGEST_SENTENCE] for text in texts if isinstance(text, str) and text)


def _versions(raw: Any) -> dict[str, str]:
    return (
        {storable(str(k))[:50]: storable(str(v))[:50] for k, v in raw.items()}
        if isinstance(raw, dict)
        else {}
    )


HANDLERS: dict[ReportKind, Callable[[Job, Claim, Report, datetime], None]] = {
    ReportKind.PREPARE: _prepare,
    ReportKind.START: _start,
    ReportKind.STEP: _step,
    ReportKind.EVAL: _eval,
    ReportKind.LOG: _log,
    ReportKind.MEMORY: _memory,
    ReportKind.CHECKPOINT: _checkpoint,
    ReportKind.RENDEZVOUS: _rendezvous,
    ReportKind.RESULT: _result,
}
