"""A simulation of two weeks of a cluster in simulated time.

Services and policy are real, measurements are invented.
"""

from __future__ import annotations

import hashlib
import heapq
import io
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from knowledge.core.domain.option_json import option_json
from portal.ops.demo.jobs import PlannedJob, submit
from portal.ops.demo.outcomes import (
    REASONS,
    SimulatedOutcome,
    fate,
    result_report,
    step_report,
    steps_between,
)
from portal.ops.demo.people import People
from portal.ops.demo.sample_log import journal
from scheduler.core.decisions.decision_json import PolicyInput
from scheduler.loop import snapshot
from scheduler.loop.apply import apply
from scheduler.loop.recording import record
from scheduler.models import Attempt, Claim, Epoch, Job
from scheduler.selectors.policy import live_policy
from scheduler.services.jobs.recommend import current_recommender, options_digest, options_for
from scheduler.services.jobs.transitions import locked, move_job
from scheduler.services.jobs.verbs import cancel_job, pause_job, resume_job
from scheduler.services.sync.artifacts import store_artifact
from scheduler.services.sync.claims import take_state
from scheduler.states import JobState, WaitState
from trainer.protocol import ClaimState, Outcome, Phase, Report, ReportKind

QUARTERS = (0.25, 0.5, 0.75)
CANCELLED, PAUSED = 0.04, 0.03
STOPPING_S = 20.0
RESULT = b"Simulated: this training was played, and there is no model.\n"
Said = tuple[ReportKind, dict[str, Any]]
Deed = Callable[[datetime], None]


@dataclass
class Play:
    """Events to come, as a heap of (time, number, deed)."""

    rng: random.Random
    people: People
    end: datetime
    epoch: Epoch
    deeds: list[tuple[datetime, int, Deed]] = field(default_factory=list)
    numbers: itertools.count[int] = field(default_factory=itertools.count)
    followed: list[tuple[Attempt, SimulatedOutcome, datetime]] = field(default_factory=list)

    def expect(self, wishes: list[PlannedJob]) -> None:
        """People will submit these."""
        for wish in wishes:
            self.later(wish.at, partial(self._submit, wish))

    def later(self, at: datetime, deed: Deed) -> None:
        heapq.heappush(self.deeds, (at, next(self.numbers), deed))

    def run(self, until: datetime) -> None:
        """Do everything that happens before `until`, in order."""
        while self.deeds and self.deeds[0][0] < until:
            now, _, deed = heapq.heappop(self.deeds)
            deed(now)
            self._place(now)

    def report_progress(self, now: datetime) -> None:
        """Report the progress of attempts that have not ended by now."""
        for attempt, fated, begin in self.followed:
            share = (now - begin).total_seconds() / fated.train_s
            if 0 < share < fated.share:
                done = max((quarter for quarter in QUARTERS if quarter <= share), default=0.0)
                self._say(attempt, Phase.RUNNING, self._steps(fated, done, share), now)

    def _submit(self, wish: PlannedJob, now: datetime) -> None:
        job = submit(wish, self.people)
        if self.rng.random() < CANCELLED:
            soon = now + timedelta(seconds=self.rng.uniform(60, 3000))
            self.later(soon, partial(self._stop, job.pk, cancel_job))
        elif self.rng.random() < PAUSED:
            soon = now + timedelta(seconds=self.rng.uniform(300, 3000))
            self.later(soon, partial(self._stop, job.pk, pause_job))
            self.later(soon + timedelta(hours=8), partial(self._resume, job.pk))

    def _stop(self, job_id: str, verb: Callable[..., Job], now: datetime) -> None:
        job = Job.objects.get(pk=job_id)
        if job.state in (JobState.QUEUED, JobState.RUNNING):
            verb(job=job, actor=job.owner, now=now)
            for attempt in job.attempts.filter(ended_at__isnull=True):
                stopped = now + timedelta(seconds=STOPPING_S)
                self.later(stopped, partial(self._end, attempt, Outcome.STOPPED, []))

    def _resume(self, job_id: str, now: datetime) -> None:
        job = Job.objects.get(pk=job_id)
        if job.state == JobState.PAUSED:
            resume_job(job=job, actor=job.owner, now=now)

    def _place(self, now: datetime) -> None:
        """One decision of the portal's own policy, kept and carried out as a tick does."""
        if not Job.objects.filter(state=JobState.QUEUED).exists():
            return
        live, state = live_policy(), snapshot.take_snapshot({}, now)
        plan = live.policy.decide(state, now.timestamp())
        record(self.epoch, live, PolicyInput(state, now.timestamp()), plan)
        apply(self.epoch, state, plan, live.policy.name, now)
        for attempt in (
            Attempt.objects.filter(created_at=now).select_related("job").order_by("job__submitted_at", "job")
        ):
            self._follow(attempt, now)

    def _follow(self, attempt: Attempt, now: datetime) -> None:
        """Reports of the attempt's nodes to come."""
        fated = fate(self.rng, attempt.promised, attempt.job.params["learning_rate"])
        self.later(now + timedelta(seconds=2), partial(self._say, attempt, Phase.STARTING, []))
        begin = now + timedelta(seconds=fated.startup_s)
        self.followed.append((attempt, fated, begin))
        started = {"steps_total": fated.steps, "startup_s": fated.startup_s}
        self.later(begin, partial(self._say, attempt, Phase.RUNNING, [(ReportKind.START, started)]))
        reported = 0.0
        for share in (*(quarter for quarter in QUARTERS if quarter < fated.share), fated.share):
            steps = self._steps(fated, reported, share)
            at = begin + timedelta(seconds=fated.train_s * share)
            if share < fated.share:
                self.later(at, partial(self._say, attempt, Phase.RUNNING, steps))
            else:
                last = [*steps, (ReportKind.RESULT, result_report(self.rng, fated))]
                self.later(at, partial(self._end, attempt, fated.outcome, last))
            reported = share

    def _steps(self, fated: SimulatedOutcome, begin: float, end: float) -> list[Said]:
        steps = steps_between(fated, begin, end)
        return [(ReportKind.STEP, step_report(self.rng, fated, step)) for step in steps]

    def _say(
        self,
        attempt: Attempt,
        phase: Phase,
        said: list[Said],
        now: datetime,
        outcome: Outcome | None = None,
    ) -> None:
        """A sync of each node of the attempt; what comes after its end is not heard."""
        if Attempt.objects.filter(pk=attempt.pk, ended_at__isnull=False).exists():
            return
        log = journal(attempt, phase, said, outcome)
        for claim in Claim.objects.filter(attempt=attempt).select_related("node"):
            # As in training, the first process of a gang writes the log.
            sent = [*said, (ReportKind.LOG, {"text": log})] if log and not claim.rank else said
            reports = tuple(
                Report(seq=claim.acked_seq + number, kind=kind, body=body)
                for number, (kind, body) in enumerate(sent, start=1)
            )
            state = ClaimState(
                claim=str(claim.pk), fence=attempt.fence, phase=phase, outcome=outcome, reports=reports,
                reason=REASONS[outcome] if outcome else "",
                exit_code=None if outcome is None else int(outcome is not Outcome.SUCCEEDED),
            )  # fmt: skip
            take_state(node=claim.node, said=state, now=now)

    def _end(self, attempt: Attempt, outcome: Outcome, said: list[Said], now: datetime) -> None:
        live = attempt.claims.filter(rank=0, attempt__ended_at__isnull=True)
        # Without a result the portal believes no success.
        if outcome is Outcome.SUCCEEDED and (claim := live.first()):
            digest, stream = hashlib.sha256(RESULT).hexdigest(), io.BytesIO(RESULT)
            store_artifact(claim=claim, path="output/README.md", sha256=digest, stream=stream, now=now)
        self._say(attempt, Phase.ENDED, said, now, outcome)
        job = Job.objects.get(pk=attempt.job_id)
        if job.state == JobState.QUEUED and job.wait_code == WaitState.OPTIONS:
            self._look_for_less(job, now)

    def _look_for_less(self, job: Job, now: datetime) -> None:
        """Play the worker's part after a job ran out of memory, in simulated time."""
        recommender = current_recommender()
        options = options_for(job, recommender, now)
        if options:
            fresh = {"options": [option_json(option) for option in options], "wait_code": "", "wait_text": ""}
            Job.objects.filter(pk=job.pk).update(options_for=options_digest(recommender), **fresh)
            return
        reason = "Out of memory; no configuration that is predicted to need less is left."
        move_job(
            job=locked(job.pk), to=JobState.FAILED, now=now, reason=reason,
            failure_class="resource", failure_reason=reason,
        )  # fmt: skip
