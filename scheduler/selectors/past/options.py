"""The options that a job of the past had, and what became of its promise."""

from __future__ import annotations

from collections.abc import Sequence

from knowledge.core.domain.option_json import read_option
from knowledge.core.domain.types import Option
from knowledge.core.recommend.objectives import affordable, keeping
from scheduler.models import Attempt, Job
from scheduler.selectors.cluster.stop_costs import restart_s
from scheduler.simulator.world.past_options import PastOptions
from trainer.protocol import Outcome

LEAST_SLOWER = 1e-6  # a job that ran hardly at all


def past_options(job: Job, attempts: Sequence[Attempt]) -> PastOptions | None:
    """The options of a job of the past; None where nothing was promised.

    attempts: those that ran, the earliest first.
    """
    if not all(attempt.promised.duration_s.value > 0 for attempt in attempts):
        return None
    failed = _failed(attempts)
    ran = [attempt.promised for attempt in attempts]
    kept = [one for one in _options(job) if one.duration_s.value > 0]
    places = {one.place for one in kept}
    tried = [one for one in ran if one.key in failed and one.place not in places]
    others = [one for one in ran if one.key not in failed and one.place not in places]
    options = {one.place: one for one in (*tried, *kept, *others)}
    return PastOptions(tuple(options.values()), _slower(job, attempts, failed), failed)


def _options(job: Job) -> tuple[Option, ...]:
    """The job's last options, as far as budget and deadline left them when it came."""
    agreed = job.promised.cost.value if job.promised else None
    paid = affordable(tuple(map(read_option, job.options)), job.budget, agreed)
    from_when = max(job.submitted_at, job.begin_at or job.submitted_at)
    left_s = (job.deadline_at - from_when).total_seconds() if job.deadline_at else None
    return keeping(paid, left_s, job.budget)


def _failed(attempts: Sequence[Attempt]) -> dict[str, float]:
    """Options that ran out of memory before another one did not, and after how long."""
    last = attempts[-1].promised.key
    return {
        one.promised.key: _lasted_s(one)
        for one in attempts[:-1]
        if one.outcome == Outcome.OOM and one.promised.key != last
    }


def _slower(job: Job, attempts: Sequence[Attempt], failed: dict[str, float]) -> float:
    """How many times longer than promised it ran.

    Each attempt is measured by its own promise. Start-ups of later ones are restarts. The cost of
    a lost node is left out, since it is played; that of other failures belongs to the job.
    """
    share, times = 1.0, 0.0
    for number, attempt in enumerate(attempts):
        follows = attempts[number + 1] if number + 1 < len(attempts) else None
        if attempt.promised.key in failed:
            continue
        if attempt.outcome == Outcome.LOST and follows is not None:
            share -= _kept(job, attempt, follows)
            continue
        again_s = restart_s(attempts[: number + 1]) if number else 0.0
        times += max(0.0, _lasted_s(attempt) - again_s) / attempt.promised.duration_s.value
    return max(times / share if share > 0 else times, LEAST_SLOWER)


def _kept(job: Job, attempt: Attempt, follows: Attempt) -> float:
    """The share of the job that an attempt did and the next one went on from."""
    steps = follows.resume_step - attempt.resume_step
    return max(0.0, steps / job.total_steps) if job.total_steps else 0.0


def _lasted_s(attempt: Attempt) -> float:
    return attempt.lasted_s(attempt.ended_at) if attempt.ended_at else 0.0
