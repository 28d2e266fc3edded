"""One job with a past, at stated times and prices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from knowledge.core.domain.option_json import read_option
from knowledge.core.domain.types import Option
from portal.accounts.models import User
from portal.clock import database_now
from scheduler.models import Job
from scheduler.services.jobs.starts import start_attempt
from scheduler.services.jobs.verbs import cancel_job, pause_job, preempt_job, resume_job
from scheduler.states import StopFor
from tests.harness import world
from tests.harness.fake_node import FakeNode, result
from trainer.protocol import ClaimOrder


@dataclass
class Clock:
    """The database's clock, which stands still until told; it moves in uneven steps."""

    now: datetime

    def __call__(self) -> datetime:
        return self.now

    def pass_(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@dataclass
class Story:
    """A job, two nodes, and a record of what the job's trainer said: (fence, kind, body)."""

    clock: Clock
    owner: User
    priced: bool
    said: list[tuple[int, str, dict[str, Any]]] = field(default_factory=list)
    prices: list[tuple[datetime, str, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.small = world.fake_node(name="small", slots=2)
        self.large = world.fake_node(name="large", slots=2, model="L4", memory_bytes=24 << 30)
        self.price(self.small, 3.0)
        self.price(self.large, 7.25)
        self.job = world.job(self.owner, name="figures")
        self.node, self.order = self.small, None
        self.clock.pass_(7.25)

    def price(self, node: FakeNode, price: float) -> None:
        if self.priced:
            world.price_node(node, price)
            self.prices.append((self.clock.now, node.node_id, price))

    def options(self) -> list[Option]:
        self.job.refresh_from_db()
        return [read_option(option) for option in self.job.options]

    def place(self, gpus: int = 1, node: FakeNode | None = None) -> None:
        """Give the job its GPUs."""
        self.node = node or self.small
        model = "cpu" if self.node is self.small else "L4"
        option = next(one for one in self.options() if (one.gpu_model, one.gpus) == (model, gpus))
        prices = [price for _, node_id, price in self.prices if node_id == self.node.node_id]
        if prices and prices[-1] != option.price_per_gpu_hour:  # as a refresh of the options leaves it
            option = replace(option, price_per_gpu_hour=prices[-1])
        self.node.sync()
        taken = [(self.node.node_id, index) for index in range(gpus)]
        start_attempt(job=self.job, option=option, gpus=taken, now=database_now())
        self.clock.pass_(1.5)

    def take_up(self) -> None:
        self.order = self.node.take_up()
        self.clock.pass_(11.125)

    def report(self, kind: str, **body: Any) -> dict[str, Any]:
        assert self.order is not None
        self.said.append((self.order.fence, kind, body))
        self.heard_at = self.clock.now
        return {"kind": kind, "body": body}

    def step(self, number: int, *, loss: float | None, rate: float, step_s: float) -> dict[str, Any]:
        return self.report(
            "step", step=number, total_steps=40, loss=loss, tokens_per_s=rate, step_s=step_s,
            memory_bytes=10**8 + number,
        )  # fmt: skip

    def train(self, *steps: int, slower: float = 1.0) -> None:
        """Begin to train, and say these steps."""
        order = self.told_order()
        self.node.run(order, self.report("start", steps_total=40))
        for number in steps:
            self.clock.pass_(20.5)
            loss = None if number == 13 else 3.0 - number / 20
            line = self.step(number, loss=loss, rate=(1000.0 + number) / slower, step_s=2.5 * slower)
            self.node.run(order, line)
        self.clock.pass_(3.75)

    def told_order(self) -> ClaimOrder:
        assert self.order is not None
        return self.order

    def run(self, *steps: int, gpus: int = 1, node: FakeNode | None = None) -> None:
        """From the queue into training."""
        self.place(gpus, node)
        self.take_up()
        self.train(*steps)

    def end(self, outcome: str, **figures: Any) -> None:
        body = result(tokens_per_s=987.5 + len(self.said), final_loss=0.25, **figures)["body"]
        self.node.end(self.told_order(), outcome, self.report("result", **body), reason="It is so.")
        self.clock.pass_(5.5)

    def die(self) -> None:
        """Killed before it could say anything of its end."""
        self.node.end(self.told_order(), "killed", reason="Killed by signal 9.")
        self.clock.pass_(5.5)

    def verb(self, act: Callable[..., Job], **more: Any) -> None:
        self.job.refresh_from_db()
        act(job=self.job, now=database_now(), **more)
        self.clock.pass_(2.25)

    def pause(self) -> None:
        self.verb(pause_job, actor=self.owner)

    def resume(self) -> None:
        self.verb(resume_job, actor=self.owner)

    def cancel(self) -> None:
        self.verb(cancel_job, actor=self.owner)

    def stop_for(self, why: StopFor) -> None:
        self.verb(preempt_job, stop_for=why, reason="Somebody else goes first.", grace_s=None)

    def paused_after(self, step: int) -> None:
        self.run(1, step)
        self.node.save_checkpoint(self.told_order(), step)
        self.pause()
        self.end("stopped")

    def resumed(self, step: int = 8) -> None:
        """Paused after a step and queued again; by now prices are others."""
        self.paused_after(step)
        self.clock.pass_(600.5)
        self.price(self.small, 4.5)
        self.resume()
        self.clock.pass_(31.0)
