"""Claim states that nodes report.

They are accepted under the current fence only, each report once.
"""

from __future__ import annotations

from datetime import datetime

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Max

from portal.accounts.services import audit
from scheduler.core.measured import Measured
from scheduler.core.plausible import doubts_of_success
from scheduler.errors import BadReport, Implausible, NotFound, StaleAttempt
from scheduler.models import Artifact, Attempt, Claim, Job, Node
from scheduler.services.jobs.attempts import end_attempt, release
from scheduler.services.jobs.preemptions import note_start_up
from scheduler.services.jobs.transitions import locked, move_job
from scheduler.services.nodes.state import record_decline, record_implausible
from scheduler.services.sync.checkpoints import set_aside
from scheduler.services.sync.engine_queue import note_queue
from scheduler.services.sync.reports import apply_report
from scheduler.states import JobState, Outcome
from trainer.protocol import ClaimState, Phase

ORDER = list(Phase)
LOG_FILE, CHECKPOINTS = "log.txt", "checkpoints/"  # uploads that are no output
BEFORE_A_START = (Outcome.DECLINED, Outcome.STOPPED, Outcome.CHECKPOINT, Outcome.DATA)
ENDS = {
    Outcome.SUCCEEDED: "The training finished.",
    Outcome.STOPPED: "The training was stopped.",
    Outcome.OOM: "The training ran out of memory.",
}


def held_claim(*, node: Node, claim_id: str, fence: int, now: datetime, job: Job | None = None) -> Claim:
    """Return the node's live claim under its current fence.

    `job` is its job where the caller has it. Raises NotFound (with a security event when it is
    another node's) and StaleAttempt.
    """
    claim = _find(claim_id, "attempt" if job else "attempt__job")
    if claim is None or claim.node_id != node.pk:
        if claim is not None:
            audit(action="foreign claim asked for", node=node.name, target=f"claim {claim.pk}", now=now)
        raise NotFound("This node has no such claim.")
    attempt, claim.node = claim.attempt, node
    attempt.job = job or attempt.job
    if attempt.ended_at is not None or fence != attempt.fence or fence != attempt.job.fence:
        raise StaleAttempt("This attempt has ended or was replaced; stop it.")
    return claim


def _find(claim_id: str, related: str) -> Claim | None:
    try:
        return Claim.objects.select_related(related).filter(pk=claim_id).first()
    except ValidationError:  # no UUID
        return None


def take_state(*, node: Node, said: ClaimState, now: datetime) -> str:
    """Apply a node's account of one claim: new reports first, then phase, then end.

    A report that makes no sense is skipped and named in the returned text, so that a node can
    never get stuck on it. Raises NotFound, StaleAttempt, or BadReport for a phase that goes
    back.
    """
    claim = held_claim(node=node, claim_id=said.claim, fence=said.fence, now=now)
    waits_as_before = said.phase is not Phase.QUEUED or said.reason == claim.engine_reason
    nothing_new = said.phase == claim.phase and all(r.seq <= claim.acked_seq for r in said.reports)
    return "" if nothing_new and waits_as_before else _take(node, claim.attempt.job_id, said, now)


@transaction.atomic
def _take(node: Node, job_id: str, said: ClaimState, now: datetime) -> str:
    job = locked(job_id)
    # Again, under the lock.
    claim = held_claim(node=node, claim_id=said.claim, fence=said.fence, now=now, job=job)
    if claim.outcome:
        return ""  # it ended already and waits for the rest of its gang
    if ORDER.index(said.phase) < ORDER.index(Phase(claim.phase)):
        raise BadReport(f"the claim was {claim.phase} and cannot be {said.phase} again")
    note_queue(job=job, claim=claim, said=said, now=now)
    wrong = _take_reports(job, claim, said, now)
    if said.phase is Phase.ENDED:
        _end(claim, said, now)
    elif said.phase != claim.phase:
        _advance(locked(job.pk), claim, said.phase, now)
    return wrong


def _take_reports(job: Job, claim: Claim, said: ClaimState, now: datetime) -> str:
    wrong: list[str] = []
    acked = claim.acked_seq
    for report in said.reports:
        if report.seq != acked + 1:
            continue  # seen ones have no effect; after a gap the node sends again
        try:
            with transaction.atomic():
                apply_report(job=job, claim=claim, report=report, now=now)
        except BadReport as bad:
            wrong.append(f"report {report.seq}: {bad}")
            job.refresh_from_db()  # what the report had noted of it was taken back
            if isinstance(bad, Implausible):
                record_implausible(node=claim.node, what=f"{report.kind} of job {job.pk}: {bad}", now=now)
        acked += 1
    if acked != claim.acked_seq:
        Claim.objects.filter(pk=claim.pk).update(acked_seq=acked)
        claim.acked_seq = acked
    return "; ".join(wrong)


def _advance(job: Job, claim: Claim, phase: Phase, now: datetime) -> None:
    """Record the phase; the job follows once every claim of its gang is that far.

    A claim that delivers needs its GPUs no more: its files may wait for the portal's disk.
    """
    claim.phase, claim.started = phase, phase is not Phase.QUEUED
    claim.save(update_fields=["phase", "started"])
    if phase is Phase.DELIVERING:
        release(job=job, attempt=claim.attempt, claims=[claim], now=now)
    slowest = min((Phase(p) for p in claim.attempt.claims.values_list("phase", flat=True)), key=ORDER.index)
    if job.state == JobState.ASSIGNED and slowest not in (Phase.ASSIGNED, Phase.QUEUED):
        job = move_job(job=job, to=JobState.STARTING, now=now, first_started_at=job.first_started_at or now)
    trains = slowest is Phase.RUNNING or (slowest is Phase.DELIVERING and claim.attempt.figures != Measured())
    if job.state == JobState.STARTING and trains:
        Attempt.objects.filter(pk=claim.attempt_id).update(running_at=now)
        if claim.attempt.fence > 1:
            note_start_up(attempt=claim.attempt, now=now)
        move_job(job=job, to=JobState.RUNNING, now=now)


def _end(claim: Claim, said: ClaimState, now: datetime) -> None:
    outcome = said.outcome or Outcome.ERROR
    reason = said.reason or ENDS.get(outcome, f"The attempt ended: {outcome}.")
    if outcome is Outcome.SUCCEEDED and (doubts := _doubts(claim)):
        outcome, reason = Outcome.LOST, f"Its node reported a success {doubts}, which is not believed."
        what = f"success of job {claim.attempt.job_id} {doubts}"
        record_implausible(node=claim.node, what=what, now=now)
    claim.phase, claim.outcome, claim.exit_code = Phase.ENDED, outcome, said.exit_code
    claim.started = not _never_ran(claim, said, outcome)
    claim.save(update_fields=["phase", "outcome", "exit_code", "started"])
    if outcome is Outcome.DECLINED:
        record_decline(node=claim.node, reason=reason, now=now)
    elif outcome is Outcome.CHECKPOINT:
        set_aside(attempt=claim.attempt, reason=reason, now=now)
    attempt = claim.attempt
    if _explains(attempt, outcome):
        at = f"{claim.node.name}: " if len(attempt.claims.all()) > 1 else ""
        attempt.pending_outcome, attempt.pending_reason = outcome, f"{at}{reason}"
        attempt.pending_since = attempt.pending_since or now
        attempt.save(update_fields=["pending_outcome", "pending_reason", "pending_since"])
    if not attempt.claims.filter(outcome="").exists():
        end_attempt(
            attempt=attempt,
            outcome=Outcome(attempt.pending_outcome or outcome),
            reason=attempt.pending_reason or reason,
            now=now,
        )


def _doubts(claim: Claim) -> str:
    """What contradicts a success of the node with the results; empty if nothing."""
    if claim.rank:
        return ""
    attempt = claim.attempt
    steps = (attempt.resume_step, attempt.figures.step, attempt.metrics.aggregate(at=Max("step"))["at"])
    files = Artifact.objects.filter(claim=claim).exclude(path=LOG_FILE)
    return doubts_of_success(
        step=max(step or 0 for step in steps),
        total_steps=attempt.job.total_steps,
        has_output=files.exclude(path__startswith=CHECKPOINTS).exists(),
    )


def _explains(attempt: Attempt, outcome: Outcome) -> bool:
    """Tell whether this end is the reason why the attempt goes wrong.

    The first bad end is, unless it only missed another node.
    """
    if outcome is Outcome.SUCCEEDED:
        return False
    first = attempt.pending_outcome
    return not first or (first == Outcome.LOST and outcome not in (Outcome.LOST, Outcome.STOPPED))


def _never_ran(claim: Claim, said: ClaimState, outcome: Outcome) -> bool:
    """Tell whether the claim ended before there was a process that learnt anything.

    There is then no exit code and nothing measured.
    """
    if outcome not in BEFORE_A_START or said.exit_code is not None:
        return False
    return claim.attempt.figures == Measured() and not claim.attempt.metrics.exists()
