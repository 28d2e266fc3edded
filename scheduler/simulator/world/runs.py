"""The life of a job in a simulation.

It consists of progress, GPU time, and the job as policies see it.
"""

from __future__ import annotations

import math

from knowledge.core.domain.cost import cost
from knowledge.core.domain.types import Goal, Option
from scheduler.core.types import ExpectedRelease, GpuId, Holding, JobInfo
from scheduler.record_builders import builder
from scheduler.simulator.errors import PolicyBroke
from scheduler.simulator.inputs.trace import TraceJob

_ROUNDING = 1e-6  # s
_job_info = builder(JobInfo)
HELD = "It is held."


class Run:
    """A job that has arrived. Shares are of the whole job; times in s.

    While it holds GPUs: `since` when it got them, `moving` from when it makes progress, `done` its share at
    `mark`, `rate` the share per second and `until` the share at which the rate changes.
    """

    __slots__ = (
        "_holds", "attained_gpu_s", "awaits", "charged", "cost", "done", "factor", "failures", "finished",
        "first_start", "front", "gpus", "job", "kept_back", "lost_gpu_s", "mark", "moving", "option",
        "options", "paused", "plan", "preempted_at", "preemptions", "profiling", "ran_s", "rate", "restarts",
        "saved", "since", "stopped_at", "topology", "topology_level", "until", "waiting_view",
    )  # fmt: skip

    def __init__(self, job: TraceJob, options: tuple[Option, ...], awaits: tuple[str, ...] = ()) -> None:
        self.job = job
        self.awaits = awaits  # jobs that must end before it may start
        self.topology, self.topology_level = job.closeness()
        self.options = options
        self.option: Option | None = None
        self.gpus: tuple[GpuId, ...] = ()
        self._holds: Holding | None = None  # as policies see it; made when one looks
        self.done = 0.0
        self.rate = 0.0
        self.factor = 1.0  # below 1 beside other jobs
        self.until = 1.0
        self.since = self.mark = self.moving = self.charged = 0.0
        self.saved = 0.0  # share of the last checkpoint
        self.plan = 0  # events planned before this number are stale
        self.first_start: float | None = None
        self.stopped_at: float | None = None
        self.preempted_at: float | None = None
        self.finished: float | None = None
        self.attained_gpu_s = 0.0
        self.ran_s = 0.0  # before it last started
        self.lost_gpu_s = 0.0  # held without lasting progress
        self.cost = 0.0
        self.preemptions = self.restarts = self.failures = 0
        self.profiling = False  # is it still to be measured by a profiling run?
        self.kept_back = self.paused = False  # by a person
        self.front = 0.0  # its share of a class, once it was moved to the front
        self.waiting_view: JobInfo | None = None

    @property
    def running(self) -> bool:
        return self.option is not None

    @property
    def held(self) -> Option:
        """The option of a running job."""
        if self.option is None:
            raise PolicyBroke(f"job {self.job.job_id} does not run")
        return self.option

    def is_at(self, option: Option, gpus: tuple[GpuId, ...]) -> bool:
        """Does it hold these GPUs, with this option?"""
        return self.held.key == option.key and set(self.gpus) == set(gpus)

    def check_start(self, option: Option, gpus: tuple[GpuId, ...]) -> None:
        """Raises PolicyBroke if it does not wait, or the GPUs are not as many."""
        if self.option is not None or self.finished is not None:
            raise PolicyBroke(f"job {self.job.job_id} was started, but it does not wait")
        if len(gpus) != option.config.number_gpus:
            raise PolicyBroke(f"job {self.job.job_id} was given {len(gpus)} GPUs for {option.key}")

    def start(self, now: float, option: Option, gpus: tuple[GpuId, ...], delay_s: float) -> None:
        """Hold GPUs; progress begins after the delay."""
        self.option, self.gpus = option, gpus
        self.since = self.charged = now
        self.rate = 0.0
        self.mark = self.moving = now + delay_s
        self.saved = self.done
        self.plan += 1
        self.waiting_view = None
        if self.first_start is None:
            self.first_start = now
        else:
            self.restarts += 1

    def tell(self, options: tuple[Option, ...]) -> None:
        """Tell a job the options that it has from here on.

        The one it runs with says the same as they do.
        """
        self.options, self.waiting_view = options, None
        held = self.option
        for option in options:
            if held and option.gpus == held.gpus and option.key == held.key:
                self.option, self._holds = option, None

    def forget_progress(self) -> None:
        """All that it did so far is lost."""
        self.lost_gpu_s = self.attained_gpu_s
        self.done = self.saved = 0.0

    def await_only(self, jobs: tuple[str, ...]) -> None:
        """Some jobs that it comes after have ended; these have not."""
        self.awaits, self.waiting_view = jobs, None

    def stop(self, now: float) -> tuple[GpuId, ...]:
        """Let the GPUs go, all progress saved; returns them. Advance it first."""
        if self.moving > self.since:
            self.lost_gpu_s += len(self.gpus) * (min(now, self.moving) - self.since)
        self.ran_s += now - self.since
        gpus, self.gpus, self.option, self._holds = self.gpus, (), None, None
        self.plan += 1
        self.stopped_at = now
        return gpus

    def run_left_s(self, now: float) -> float | None:
        """The time for which it may still run; None: any time."""
        if self.job.max_run_s is None:
            return None
        return self.job.max_run_s - self.ran_s - (now - self.since if self.running else 0.0)

    def advance(self, now: float, price_per_gpu_h: float) -> None:
        """Bring progress and GPU time up to now."""
        if now > self.mark:
            done = self.done + self.rate * self.factor * (now - self.mark)
            self.done = self.until if done > self.until else done  # a call of `min` takes as long as all this
            self.mark = now
        gpu_s = len(self.gpus) * (now - self.charged)
        self.attained_gpu_s += gpu_s
        if price_per_gpu_h:
            self.cost += cost(gpu_s, price_per_gpu_h)
        self.charged = now

    def left_s(self, now: float, option: Option) -> float:
        """The predicted time left with the option that it holds."""
        done = self.done
        if now > self.mark:
            done += self.rate * self.factor * (now - self.mark)
            done = self.until if done > self.until else done
        left_s = (1.0 - done) * option.duration_s.value
        if self.job.max_run_s is not None:
            left_s = min(left_s, self.job.max_run_s - self.ran_s - (now - self.since))
        return left_s

    def release(self, now: float) -> ExpectedRelease:
        """When it is predicted to end, and what it lets go then; it must run."""
        return ExpectedRelease(self.left_s(now, self.held), self.gpus, self.held)

    def change_at(self) -> float:
        """When the present rate ends: the finish, or an earlier change."""
        return self.mark + (self.until - self.done) / (self.rate * self.factor)

    def next_change(self, report_s: float) -> float:
        """When its present rate ends, or its time is up.

        report_s: its end is heard of at a whole multiple of it; 0: at once.
        """
        at = self.mark + (self.until - self.done) / (self.rate * self.factor)  # `change_at`, without the call
        if self.job.max_run_s is not None:
            stops_at = self.since + self.job.max_run_s - self.ran_s
            if at > stops_at:
                return max(stops_at, self.charged)
        if report_s and self.until >= 1.0:
            return math.ceil(at / report_s - _ROUNDING) * report_s
        return at

    def is_cut_off(self, now: float) -> bool:
        """Has it run for as long as it may, at a change that it planned?"""
        return self.job.max_run_s is not None and self.change_at() > now + _ROUNDING

    def lose_since_checkpoint(self, now: float, every_s: float) -> None:
        """Fall back to the last checkpoint; with every_s 0 each step is saved."""
        if every_s <= 0 or now <= self.moving:
            return
        unsaved_s = min((now - self.moving) % every_s, now - self.moving)
        kept = max(self.done - self.rate * self.factor * unsaved_s, self.saved)
        self.lost_gpu_s += len(self.gpus) * unsaved_s
        self.done = kept

    def seen(self, now: float, goal: Goal, restart_s: float, checkpoint_s: float) -> JobInfo:
        """The job as policies see it now; advance it first. A waiting one is made once."""
        if self.option is not None:
            if self._holds is None:
                self._holds = Holding(option=self.option, gpus=self.gpus, since=self.since)
            unsaved_s = max(now - self.moving, 0.0) % checkpoint_s if checkpoint_s else 0.0
            return self._job(goal, restart_s, self._holds, unsaved_s, now)
        if self.waiting_view is None:
            made = self._plain_job(goal, restart_s) or self._job(goal, restart_s, None, 0.0, now)
            self.waiting_view = made
        return self.waiting_view

    def _plain_job(self, goal: Goal, restart_s: float) -> JobInfo | None:
        """`_job` in half of the time, if it never ran and says little, as most."""
        job = self.job
        if self.first_start is not None or self.awaits or self.kept_back or self.front:
            return None
        if _seldom_said(job) != _UNSAID:
            return None
        return _job_info(
            id=job.job_id,
            submitted_at=job.submit_s,
            options=self.options,
            goal=Goal(job.goal) if job.goal else goal,
            user=job.user or job.group,
            team=job.group,
            restart_s=restart_s,
        )

    def _job(
        self, goal: Goal, restart_s: float, holds: Holding | None, unsaved_s: float, now: float
    ) -> JobInfo:
        job = self.job
        return _job_info(
            id=job.job_id,
            submitted_at=job.submit_s,
            options=self.options,
            goal=Goal(job.goal) if job.goal else goal,
            user=job.user or job.group,
            team=job.group,
            weight=job.weight,
            priority=job.priority + self.front,
            held=HELD if self.kept_back else "",
            due_at=job.deadline_s,
            spot=job.deadline_s is not None,
            work_left=max(1.0 - self.done, 0.0),
            attained_gpu_s=self.attained_gpu_s,
            restart_s=restart_s,
            preemptible=job.preemptible,
            borrows=job.preemptible,
            preemptions=self.preemptions,
            restarts=self.restarts,
            first_started_at=self.first_start,
            stopped_at=None if holds else self.stopped_at,
            preempted_at=self.preempted_at,
            unsaved_s=unsaved_s,
            begins_at=job.begin_s,
            array=job.array if job.array_limit else "",
            array_limit=job.array_limit,
            awaits=self.awaits,
            run_left_s=None if job.max_run_s is None else self.run_left_s(now),
            topology=self.topology,
            level=self.topology_level,
            holds=holds,
        )


def _seldom_said(job: TraceJob) -> tuple[object, ...]:
    """Fields that policies see and few jobs state."""
    return (
        job.weight, job.priority, job.preemptible, job.deadline_s, job.begin_s, job.array_limit,
        job.max_run_s, job.topology, job.topology_level,
    )  # fmt: skip


_UNSAID = _seldom_said(TraceJob(job_id="", submit_s=0.0, gpus=1.0))
