"""docs/figures.md a second time: every figure from events, allocations, reports and prices alone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median
from typing import Any

from knowledge.catalogue.portal_catalogue import known_model
from knowledge.core.domain.types import Interval
from portal.events.models import Event
from portal.events.types import MOVES, EventType
from scheduler.core.pace import measured_pace
from scheduler.core.remaining_time import promised_remaining, time_left
from scheduler.models import Allocation, Attempt
from tests.portal.figures.story import Story

SHOWN = {
    "queued": "queued", "assigned": "queued", "starting": "running", "running": "running",
    "stopping/cancel": "cancelled", "stopping/pause": "pausing", "stopping/preempt": "queued",
    "stopping/drain": "running", "paused": "paused", "succeeded": "succeeded", "failed": "failed",
    "cancelled": "cancelled",
}  # fmt: skip
FINAL = ("succeeded", "failed", "cancelled")
BOUNDS = ("value", "low", "high")
Lines = dict[str, tuple[float | None, ...]]  # value, low and high as promised, actual, whether it is inside
LINES = ("duration_s", "tokens_per_second", "peak_memory_bytes", "cost")


def seconds(start: datetime, end: datetime) -> float:
    return (end - start).total_seconds()


def _placement(option: dict[str, Any]) -> tuple[Any, ...]:
    config = option["config"]
    return config["gpu_model"], config["number_gpus"], config["number_nodes"]


@dataclass
class Try:
    """One attempt: its GPUs from when to when, and when it trained."""

    fence: int
    start: datetime
    end: datetime | None
    trained_at: datetime | None
    gpus: list[str]  # the node of each


class ByHand:
    """The figures of a story's job by the present moment of its clock."""

    def __init__(self, story: Story) -> None:
        self.story, self.now = story, story.clock.now
        self.events = list(story.job.events.filter(type__in=MOVES | {EventType.JOB_SUBMITTED}))
        self.last = self.events[-1]
        self.tries = [self._try(fence) for fence in sorted({event.fence for event in self.events} - {0})]

    def _try(self, fence: int) -> Try:
        held = list(
            Allocation.objects.filter(claim__attempt__job=self.story.job, claim__attempt__fence=fence)
        )
        trained = [e.at for e in self.events if e.fence == fence and e.new == "running"]
        ends = {row.released_at for row in held}
        assert len(ends) == len({row.allocated_at for row in held}) == 1, "a gang starts and ends together"
        return Try(
            fence, held[0].allocated_at, ends.pop(), trained[0] if trained else None,
            [row.gpu.node_id for row in held],
        )  # fmt: skip

    def _shown(self, event: Event) -> str:
        return SHOWN[f"{event.new}/{event.stop_for}" if event.stop_for else event.new]

    @property
    def internal(self) -> str:
        return self.last.new

    @property
    def state(self) -> str:
        return self._shown(self.last)

    @property
    def since(self) -> datetime:
        began = self.last.at
        for event in reversed(self.events):
            if self._shown(event) != self.state:
                break
            began = event.at
        return began

    @property
    def ended_at(self) -> datetime | None:
        return self.last.at if self.internal in FINAL else None

    @property
    def waiting_s(self) -> float:
        moments = [(self._shown(event), event.at) for event in self.events] + [("", self.now)]
        return sum(seconds(at, until) for (shown, at), (_, until) in pairwise(moments) if shown == "queued")

    @property
    def startup_s(self) -> float:
        return sum(seconds(one.start, one.trained_at or one.end or self.now) for one in self.tries)

    @property
    def duration_s(self) -> float:
        return sum(seconds(one.start, one.end or self.now) for one in self.tries)

    @property
    def counts(self) -> Try | None:
        """The attempt that counts for figures of a placement."""
        if not self.tries or self.tries[-1].end is None:
            return self.tries[-1] if self.tries else None
        return ([one for one in self.tries if one.trained_at] or self.tries)[-1]

    def _said(self, kind: str, fence: int | None = None) -> list[dict[str, Any]]:
        return [body for at, said, body in self.story.said if said == kind and fence in (None, at)]

    @property
    def step(self) -> int:
        return self._said("step")[-1]["step"] if self._said("step") else 0

    @property
    def total_steps(self) -> int | None:
        return 40 if self._said("start") else None

    @property
    def percent(self) -> int | None:
        if self.internal == "succeeded":
            return 100
        return None if self.total_steps is None else round(100 * self.step / self.total_steps)

    @property
    def losses(self) -> list[float]:
        return [body["loss"] for body in self._said("step") if body["loss"] is not None]

    @property
    def loss(self) -> float | None:
        return self.losses[-1] if self.losses else None

    def _live(self, name: str) -> float | None:
        now = self._said("step", self.tries[-1].fence) if self.internal == "running" else []
        return now[-1][name] if now else None

    @property
    def time_left(self) -> Interval | None:
        """By the promise of the attempt and all that it reported, since it has its GPUs until it stops."""
        if self.internal not in ("starting", "running"):
            return None
        one, attempt = self.tries[-1], Attempt.objects.get(job=self.story.job, fence=self.tries[-1].fence)
        heard_at, model = one.start, known_model(self.story.job.model)
        remaining = promised_remaining(
            attempt.promised, model, began_at=0.0, step=attempt.resume_step, total_steps=self.total_steps
        )
        pace = remaining.pace
        for body in self._said("step", one.fence):
            pace = measured_pace(pace, step=body["step"], total=40, step_s=body["step_s"])
            heard_at = self.story.heard_at
        return time_left(remaining.work, pace, silent_s=seconds(heard_at, self.now))

    @property
    def time_left_s(self) -> float | None:
        return self.time_left.value if self.time_left else None

    @property
    def ends(self) -> list[datetime]:
        """At, earliest, latest."""
        left = self.time_left
        bounds = (left.value, left.low, left.high) if left else ()
        return [self.now + timedelta(seconds=bound or 0.0) for bound in bounds]

    @property
    def steady_rate(self) -> float | None:
        """Of the attempt that counts, once it has ended."""
        if self.counts is None or self.counts.end is None:
            return None
        reported = self._said("result", self.counts.fence)
        rates = [body["tokens_per_s"] for body in self._said("step", self.counts.fence)]
        return reported[-1]["tokens_per_s"] if reported else median(rates) if rates else None

    @property
    def tokens_per_second(self) -> float | None:
        return self.steady_rate if self.internal in FINAL else self._live("tokens_per_s")

    @property
    def peak_memory_bytes(self) -> float | None:
        if self.counts is None:
            return None
        peaks = [body["memory_bytes"] for body in self._said("step", self.counts.fence)]
        peaks += [body["peak_memory_bytes"] for body in self._said("result", self.counts.fence)]
        return max(peaks, default=None)

    @property
    def cost(self) -> float | None:
        total = sum(self._gpu_cost(node, one) for one in self.tries for node in one.gpus)
        return total or None

    @property
    def expected_cost(self) -> float | None:
        """What it will have cost, if it holds its GPUs at their present prices as long as it still takes."""
        if self.time_left_s is None or self.cost is None:
            return None
        now = [
            [price for _, where, price in self.story.prices if where == node][-1]
            for node in self.tries[-1].gpus
        ]
        return self.cost + sum(now) * self.time_left_s / 3600

    @property
    def promised_cost(self) -> float | None:
        return (self.story.job.promise or {}).get("cost", {}).get("value")

    def _gpu_cost(self, node: str, one: Try) -> float:
        """In steps of a fortieth of a second, as all moments of a story are."""
        set_at = [(at, price) for at, where, price in self.story.prices if where == node]
        moments = sorted({one.start, one.end or self.now, *(at for at, _ in set_at)})
        return sum(
            seconds(at, until) / 3600 * [price for since, price in set_at if since <= at][-1]
            for at, until in pairwise(moments)
            if one.start <= at and until <= (one.end or self.now) and set_at
        )

    @property
    def comparison(self) -> Lines:
        """With the promise of the attempt that counts, else with that at submission."""
        return self._compared(self._placed or self.story.job.promise)

    @property
    def submission_comparison(self) -> Lines:
        """With the promise at submission, where the job was placed elsewhere than promised."""
        first = self.story.job.promise
        if self._placed is None or _placement(first) == _placement(self._placed):
            return {}
        return self._compared(first)

    def _compared(self, promise: dict[str, Any]) -> Lines:
        actual = {
            "duration_s": self.duration_s, "tokens_per_second": self.steady_rate,
            "peak_memory_bytes": self.peak_memory_bytes, "cost": self.cost,
        }  # fmt: skip
        live = self.counts is not None and self.counts.end is None
        if live or self.counts is None:
            actual |= {"duration_s": None, "cost": None, "tokens_per_second": None}
        return {
            name: (*promised, actual[name], self._inside(name, promised, actual[name], live))
            for name in LINES
            if (promised := tuple(promise[name][bound] for bound in BOUNDS))
            and (name != "cost" or promised[0] or actual[name])
        }

    @property
    def _placed(self) -> dict[str, Any] | None:
        if self.counts is None:
            return None
        option: dict[str, Any] = Attempt.objects.get(job=self.story.job, fence=self.counts.fence).option
        return option

    def _inside(
        self, name: str, promised: tuple[float | None, ...], actual: float | None, live: bool
    ) -> bool | None:
        _, low, high = promised
        whole = self.internal == "succeeded"
        judged = whole if name in ("duration_s", "cost") else not live and self.counts is not None
        if not judged or actual is None or low is None or high is None:
            return None
        return low <= actual <= high
