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

from django.conf import settings
from django.db import transaction
from django.db.models import Max, Q, Sum

from knowledge.core.domain.option_json import option_json
from portal.events.types import EventType
from scheduler.core.measured import FIGURES, SENTENCES
from scheduler.core.plausible import (
    FASTEST_TOKENS_PER_S,
    LARGEST_CHECKPOINT_BYTES,
    Bounds,
    bounds_of,
)
from scheduler.errors import BadReport, Implausible
from scheduler.models import Artifact, Attempt, Checkpoint, Claim, Gpu, Job, LogPiece, Metric
from scheduler.services.jobs.kept_checkpoints import forget_checkpoints
from scheduler.services.jobs.recommend import repredict
from scheduler.services.jobs.transitions import note_job
from scheduler.services.sync import progress
from scheduler.services.sync.warnings import warn
from trainer.message_reader import LARGEST, storable
from trainer.protocol import GONE, MAX_LOG_BYTES, File, ProtocolError, Report, ReportKind
from trainer.protocol_parsing import parse_file
from trainer.step_metrics import ANY_SIGN, STEP_METRICS, StepMetric
from trainer.strict_json import is_number

HOST_AND_PORT = re.compile(r"([A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]):[0-9]{1,5}\Z")
LARGEST_WHOLE = 2**31 - 1  # of steps, as their columns keep them
MOST_SENTENCES, LONGEST_SENTENCE = 20, 1000  # of one kind, about data or an output
FEWEST_MEMORY = 2**30  # of any GPU or slot: below it nobody looks how much there is
LOSSES = frozenset({"first_loss", "final_loss", "eval_loss"})
FULL_MARK = "\n[... the log is longer than the portal keeps; what follows is not kept here ...]\n"
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


def _plausible(job: Job, body: dict[str, Any], name: str) -> float | None:
    """A figure within the bounds of the job's plan. Raises Implausible."""
    value = _number(body, name, low=-LARGEST)
    most = _bounds(job).of(name)
    if value is not None and value < 0:
        raise Implausible(f"{name} must not be below 0")
    if value is not None and most is not None and value > most:
        raise Implausible(f"{name} is {value:g}, and this job can have {most:g} at most")
    return value


def _bounds(job: Job) -> Bounds:
    return bounds_of(rows=job.training_file.rows, params=job.params)


def _step_of(job: Job, body: dict[str, Any]) -> int:
    """The step of a report, which cannot lie beyond the last one."""
    step = _whole(body, "step")
    if step > (job.total_steps or _bounds(job).steps):
        last = f"the last one, {job.total_steps}" if job.total_steps else "any that the job can have"
        raise Implausible(f"step {step} lies beyond {last}")
    return step


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
    if body.get("steps_total") is not None:
        _whole(body, "steps_total")
    _keep_measured(job, attempt, body)
    if body.get("steps_total") is None:
        return
    total_steps, promised = _whole(body, "steps_total"), attempt.promised
    job.total_steps = total_steps  # the next report of this sync may be a step
    Job.objects.filter(pk=job.pk).update(total_steps=total_steps)
    if (row_tokens := _number(body, "row_tokens")) and not attempt.resume_step:
        took = max(attempt.lasted_s(now), attempt.figures.startup_s or 0.0)  # its beginning was seen late
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
    step = _step_of(job, body)
    last = (
        Metric.objects.filter(attempt=claim.attempt).order_by("-step").values_list("step", flat=True).first()
    )
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
    _keep_metrics(job, claim.attempt, _step_of(job, report.body), report.body, now, evaluation=True)
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
                row.keep(metric, _metric(body, metric, attempt))
            except BadReport as wrong:
                row.keep(metric, None)
                _note_left_out(job, attempt, metric, step, str(wrong), now)
    row.at = now
    row.save()
    return row


def _metric(body: dict[str, Any], metric: StepMetric, attempt: Attempt) -> float | None:
    value = _number(body, metric.name, low=metric.low)
    if value and metric.name == "tokens_per_s" and value > FASTEST_TOKENS_PER_S:
        raise BadReport(f"{value:g} tokens/s are more than any machine does")
    if value and metric.name == "memory_bytes" and value > FEWEST_MEMORY and value > _capacity(attempt):
        raise BadReport("it is more than the GPU has")
    return int(value) if metric.whole and value is not None else value


def _note_left_out(
    job: Job, attempt: Attempt, metric: StepMetric, step: int, why: str, now: datetime
) -> None:
    """Tell the owner once that a figure is missing, and from which step on."""
    data = {"metric": metric.public_name, "fence": attempt.fence}
    if not job.events.filter(
        type=EventType.JOB_METRIC_LEFT_OUT, data__metric=metric.public_name, data__fence=attempt.fence
    ).exists():
        reason = f"The {metric.label} of step {step} is left out: {why}. Later ones like it have no note."
        note_job(job=job, event=EventType.JOB_METRIC_LEFT_OUT, now=now, reason=reason, data=data)


def _believed(body: dict[str, Any], name: str) -> float | None:
    """A figure that a forecast may do without."""
    try:
        return _number(body, name)
    except BadReport:
        return None


def _log(job: Job, claim: Claim, report: Report, now: datetime) -> None:
    text = report.body.get("text")
    if not isinstance(text, str):
        raise BadReport("text must be a text")
    text = storable(text)
    if len(text) > MAX_LOG_BYTES:
        text = text[:MAX_LOG_BYTES] + CUT_MARK
    room = _room_for_log(job, claim)
    size = len(text.encode())
    if size <= room:
        LogPiece.objects.create(claim=claim, seq=report.seq, text=text, at=now)
        claim.log_bytes += size
    else:
        if not claim.log_left_out_bytes:
            LogPiece.objects.create(claim=claim, seq=report.seq, text=FULL_MARK, at=now)
        claim.log_left_out_bytes += size
    claim.save(update_fields=["log_bytes", "log_left_out_bytes"])


def _room_for_log(job: Job, claim: Claim) -> int:
    """Return how many bytes of log are still kept of a claim.

    It may have half of what its job's others left, so that each later attempt has some.
    """
    if claim.log_left_out_bytes:
        return 0
    others = Claim.objects.filter(attempt__job=job).exclude(pk=claim.pk).aggregate(kept=Sum("log_bytes"))
    left: int = settings.JOB_LOG_BYTES - (others["kept"] or 0)
    return left // 2 - claim.log_bytes


def _memory(job: Job, claim: Claim, report: Report, now: datetime) -> None:
    del job, now
    _peak(claim.attempt, _number(report.body, "memory_bytes"))


def _peak(attempt: Attempt, memory_bytes: float | None) -> None:
    """Keep the highest peak; one that the GPU has no room for is left out."""
    if not memory_bytes or memory_bytes <= (attempt.peak_memory_bytes or 0):
        return
    if memory_bytes <= FEWEST_MEMORY or memory_bytes <= _capacity(attempt):
        attempt.peak_memory_bytes = int(memory_bytes)
        attempt.save(update_fields=["peak_memory_bytes"])


def _capacity(attempt: Attempt) -> float:
    """The memory of the largest GPU of an attempt.

    CPU slots have no limit: of those it is all of the node's.
    """
    held = Gpu.objects.filter(allocations__claim__attempt=attempt)
    memory = held.aggregate(gpu=Max("memory_bytes"), node=Max("node__memory_bytes", filter=Q(model="cpu")))
    return max((float(value) for value in memory.values() if value), default=LARGEST)


def _checkpoint(job: Job, claim: Claim, report: Report, now: datetime) -> None:
    """Register a checkpoint.

    One at the portal counts only if every file was received as described.
    """
    step, stored = _step_of(job, report.body), report.body.get("stored")
    if stored == GONE:
        _forget_checkpoints(job, claim, step, now)
        return
    if stored not in ("portal", "node"):
        raise BadReport("stored must be portal, node or gone")
    files = _files(report.body.get("files"))
    if stored == "portal":
        _require_received(claim, step, files)
    elif (size := sum(file.bytes for file in files)) > LARGEST_CHECKPOINT_BYTES:
        raise Implausible(f"a checkpoint of {size:g} bytes is more than a node holds")
    transaction.on_commit(partial(forget_checkpoints, jobs=[job.pk], now=now), robust=True)
    _, is_new = Checkpoint.objects.get_or_create(
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
    if is_new:
        reason = f"Checkpoint at step {step}."
        note_job(job=job, event=EventType.JOB_CHECKPOINT, now=now, reason=reason, data={"stored": stored})


def _forget_checkpoints(job: Job, claim: Claim, step: int, now: datetime) -> None:
    """Offer none of the checkpoints up to this step again that the node alone had.

    The node keeps them for some time only.
    """
    reason = f"The checkpoint at step {step} is not on {claim.node.name} any more."
    known = Checkpoint.objects.filter(job=job, node=claim.node, step__lte=step, fault="")
    if known.update(fault=reason):
        note_job(job=job, event=EventType.JOB_CHECKPOINT, now=now, reason=reason, data={"stored": GONE})


def _files(raw: Any) -> list[File]:
    if not isinstance(raw, list) or not raw or len(raw) > 1000:
        raise BadReport("files must be a list of 1 to 1000 files")
    try:
        return [parse_file(entry, f"files[{index}]") for index, entry in enumerate(raw)]
    except ProtocolError as wrong:
        raise BadReport(str(wrong)) from wrong


def _require_received(claim: Claim, step: int, files: list[File]) -> None:
    rows = Artifact.objects.filter(claim=claim, path__startswith=f"checkpoints/step-{step}/")
    received = {path: (digest, size) for path, digest, size in rows.values_list("path", "sha256", "bytes")}
    for file in files:
        if received.get(f"checkpoints/step-{step}/{file.path}") != (file.sha256, file.bytes):
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
    _keep_measured(job, claim.attempt, report.body)
    _peak(claim.attempt, _number(report.body, "peak_memory_bytes"))


def _keep_measured(job: Job, attempt: Attempt, body: dict[str, Any]) -> None:
    figures: dict[str, Any] = {
        name: _loss(body, name) if name in LOSSES else _plausible(job, body, name)
        for name in FIGURES
        if body.get(name) is not None
    }
    if body.get("software") is not None:
        figures["software"] = _versions(body["software"])
    figures |= {name: told for name in SENTENCES if (told := _sentences(body.get(name)))}
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
