"""A fake node's trainings, as calibrations need them."""

from __future__ import annotations

from scheduler.loop.options.option_refresh import refresh_options
from scheduler.loop.tick import tick
from tests.harness.fake_node import FakeNode, result, step

RATES = (4000.0, 5000.0, 6000.0, 7000.0)


class Worker:
    """A worker that trains every job given to the node, at rates of its own.

    Every fourth run does not fit.
    """

    def __init__(self, node: FakeNode) -> None:
        self.node, self.done = node, 0

    def __call__(self) -> None:
        refresh_options()
        tick()
        for order in [order for order in self.node.sync().claims if order.spec is not None]:
            self.node.sync(self.node.say(order, "starting"))
            self.done += 1
            if self.done % 4 == 0:
                self.node.end(order, "oom", reason="Out of memory.")
                continue
            rate = RATES[self.done % 4]
            self.node.run(order, step(1, rate=rate))
            self.node.end(order, "succeeded", result(tokens_per_s=rate))

    def start_one(self) -> None:
        """Take up what is given and train, without an end."""
        refresh_options()
        tick()
        for order in [order for order in self.node.sync().claims if order.spec is not None]:
            self.node.sync(self.node.say(order, "starting"))
            self.node.run(order, step(1))

    def stop_all(self) -> None:
        """Confirm every stop that was asked for."""
        for order in self.node.sync().claims:
            self.node.end(order, "stopped")
