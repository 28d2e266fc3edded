"""The jobs of one play: who holds which GPUs, and how far each has come."""

from __future__ import annotations

from dataclasses import replace

from knowledge.core.domain.types import Interval, Option
from scheduler.core.ahead.durations import Spread
from scheduler.core.types import GpuId, Holding, JobInfo

LEAST_WORK = 1e-6  # of a job that runs although its steps are done: it still saves


class PlayedJob:
    """The life of a job in one play.

    info: as it was at `counted_at`, when it last started or stopped. luck: its standard normal deviate.
    While it runs, it makes progress from `moves_at` to `ends_at`. `turn` rises with every start and stop.
    """

    __slots__ = (
        "counted_at", "ended_at", "ends_at", "first_gpus", "info", "luck", "moves_at", "rate", "scale",
        "started_at", "turn", "unknown_s",
    )  # fmt: skip

    def __init__(self, info: JobInfo, luck: float, unknown_s: float) -> None:
        self.info, self.luck, self.unknown_s = info, luck, unknown_s
        self.scale: float | None = None  # true over promised duration, once it was measured
        self.counted_at = self.ends_at = self.moves_at = 0.0
        self.rate = 0.0  # share of the job per second
        self.started_at: float | None = None  # for the first time in this play
        self.first_gpus: tuple[GpuId, ...] = ()  # where it started then
        self.ended_at: float | None = None
        self.turn = 0

    def resume(self, now: float, left: Interval | None) -> None:
        """Go on with a job that runs already when the play begins.

        left: what it has left, if that was measured.
        """
        if self.info.holds is None:
            return
        option, since = self.info.holds.option, self.info.holds.since
        work = max(self.info.work_left, LEAST_WORK)
        self.info = replace(self.info, work_left=work)
        if left is None and self.info.restarts:  # it began with what an earlier attempt had left
            left_s = work * self.whole_s(option)
        elif left is None:
            left_s = Spread(option.duration_s, self.unknown_s).left_at(self.luck, now - since)
        else:
            left_s = _quantile(left, self.luck)
            promised_s = work * option.duration_s.value
            self.scale = left_s / promised_s if promised_s > 0 and work > LEAST_WORK else None
        self._moves(now, now, left_s)

    def correct(self, now: float, scale: float) -> None:
        """The rest of it takes so many times the promised duration."""
        self.info, self.scale = self.seen(now), scale
        if self.info.holds is not None:
            left_s = self.info.work_left * self.whole_s(self.info.holds.option)
            self._moves(now, max(now, self.moves_at), left_s)

    def whole_s(self, option: Option) -> float:
        """Seconds of the whole job with this option, start-up included."""
        if self.scale is not None and option.duration_s.value > 0:
            return self.scale * option.duration_s.value
        return Spread(option.duration_s, self.unknown_s).at(self.luck)

    def start(self, now: float, option: Option, gpus: tuple[GpuId, ...]) -> None:
        """Hold these GPUs from now on."""
        ran = self.info.first_started_at
        self.info = replace(
            self.info,
            holds=Holding(option=option, gpus=gpus, since=now),
            first_started_at=now if ran is None else ran,
            restarts=self.info.restarts + (ran is not None),
            stopped_at=None,
        )
        if self.started_at is None:
            self.started_at, self.first_gpus = now, gpus
        delay_s = 0.0 if ran is None else self.info.restart_s
        self._moves(now, now + delay_s, self.info.work_left * self.whole_s(option))

    def stop(self, now: float, *, preempted: bool) -> None:
        """Wait again, with the work saved."""
        seen = self.seen(now)
        self.info = replace(
            seen,
            holds=None,
            stopped_at=now,
            unsaved_s=0.0,
            preemptions=seen.preemptions + preempted,
            preempted_at=now if preempted else seen.preempted_at,
        )
        self.turn += 1

    def seen(self, now: float) -> JobInfo:
        """The job as a policy sees it now."""
        holds = self.info.holds
        if holds is None:
            return self.info
        done, may_s = self.rate * max(0.0, now - self.moves_at), self.info.run_left_s
        return replace(
            self.info,
            work_left=max(0.0, self.info.work_left - done),
            attained_gpu_s=self.info.attained_gpu_s + (now - self.counted_at) * holds.option.gpus,
            run_left_s=None if may_s is None else may_s - (now - self.counted_at),
            holds=replace(holds, left_s=max(0.0, self.ends_at - now)),
        )

    def _moves(self, now: float, at: float, left_s: float) -> None:
        may_s = self.info.run_left_s
        self.counted_at, self.moves_at = now, at
        self.ends_at = at + left_s if may_s is None else min(at + left_s, now + max(0.0, may_s))
        self.rate = self.info.work_left / left_s if left_s > 0 else 0.0
        self.turn += 1


def _quantile(left: Interval, z: float) -> float:
    """Of measured seconds; where the interval reaches 0 it is no lognormal one."""
    if left.value > 0 and (left.low is None or left.low > 0):
        return Spread(left).at(z)
    low, high = left.low or 0.0, left.value if left.high is None else left.high
    return max(0.0, left.value + z * (high - left.value if z > 0 else left.value - low))
