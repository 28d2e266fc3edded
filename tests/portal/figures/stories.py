"""Jobs in every state of the table, each with a past."""

from __future__ import annotations

from collections.abc import Callable

from scheduler.states import StopFor
from tests.portal.figures.story import Story


def _queued(_: Story) -> None:
    pass


def _assigned(story: Story) -> None:
    story.place()


def _starting(story: Story) -> None:
    story.place()
    story.take_up()


def _trains_without_a_step(story: Story) -> None:
    story.run()


def _running(story: Story) -> None:
    story.run(1, 2, 12, 13)


def _price_changed_while_running(story: Story) -> None:
    story.run(1, 2)
    story.price(story.small, 11.5)
    story.clock.pass_(40.0)


def _stopping(why: StopFor) -> Callable[[Story], None]:
    def tell(story: Story) -> None:
        story.run(1, 2)
        story.stop_for(why)

    return tell


def _pausing(story: Story) -> None:
    story.run(1, 2)
    story.pause()


def _pausing_then_cancelled(story: Story) -> None:
    _pausing(story)
    story.cancel()


def _paused(story: Story) -> None:
    story.paused_after(9)


def _paused_before_it_started(story: Story) -> None:
    story.pause()
    story.clock.pass_(60.0)


def _resumed_and_queued(story: Story) -> None:
    story.resumed()


def _resumed_and_starting(story: Story) -> None:
    story.resumed()
    story.place()
    story.take_up()


def _resumed_without_a_step(story: Story) -> None:
    """Speed and time left of the first attempt are over."""
    story.resumed()
    story.run()


def _resumed_and_running(story: Story) -> None:
    story.resumed()
    story.run(9, 15)


def _preempted_and_queued(story: Story) -> None:
    story.run(1, 2)
    story.stop_for(StopFor.PREEMPT)
    story.end("stopped")
    story.clock.pass_(9.5)


def _succeeded(story: Story) -> None:
    story.run(1, 20, 40)
    story.end("succeeded")


def _succeeded_after_a_pause(story: Story) -> None:
    story.resumed()
    story.run(9, 40)
    story.end("succeeded", peak_memory_bytes=3 * 10**8)
    story.clock.pass_(50.0)
    story.price(story.small, 99.0)


def _succeeded_resized(story: Story) -> None:
    story.resumed()
    story.run(9, 40, gpus=2)
    story.end("succeeded")


def _succeeded_elsewhere(story: Story) -> None:
    story.resumed()
    story.run(9, 40, node=story.large)
    story.end("succeeded")


def _killed_and_done_again(story: Story) -> None:
    story.run(1, 2, 3)
    story.die()
    story.run(1, 40)
    story.end("succeeded")


def _killed_then_cancelled(story: Story) -> None:
    story.run(1, 2, 3)
    story.die()
    story.cancel()


def _failed(story: Story) -> None:
    story.run(1, 2)
    story.end("error")


def _cancelled_while_it_ran(story: Story) -> None:
    story.run(1, 2)
    story.cancel()
    story.end("stopped")


def _cancelled_in_the_second_start(story: Story) -> None:
    story.resumed()
    story.place()
    story.take_up()
    story.cancel()
    story.node.end(story.told_order(), "stopped", reason="Stopped before it trained.")
    story.clock.pass_(4.0)


def _cancelled_in_the_queue(story: Story) -> None:
    story.cancel()
    story.clock.pass_(1.0)


STORIES: dict[str, Callable[[Story], None]] = {
    "queued": _queued,
    "assigned": _assigned,
    "starting": _starting,
    "trains without a step": _trains_without_a_step,
    "running": _running,
    "price changed while running": _price_changed_while_running,
    "stopping for preempt": _stopping(StopFor.PREEMPT),
    "stopping for drain": _stopping(StopFor.DRAIN),
    "pausing": _pausing,
    "pausing, then cancelled": _pausing_then_cancelled,
    "paused": _paused,
    "paused before it started": _paused_before_it_started,
    "resumed and queued": _resumed_and_queued,
    "resumed and starting": _resumed_and_starting,
    "resumed, trains without a step": _resumed_without_a_step,
    "resumed and running": _resumed_and_running,
    "preempted and queued": _preempted_and_queued,
    "succeeded": _succeeded,
    "succeeded after a pause": _succeeded_after_a_pause,
    "succeeded, resized": _succeeded_resized,
    "succeeded elsewhere": _succeeded_elsewhere,
    "killed and done again": _killed_and_done_again,
    "killed, then cancelled": _killed_then_cancelled,
    "failed": _failed,
    "cancelled while it ran": _cancelled_while_it_ran,
    "cancelled in the second start": _cancelled_in_the_second_start,
    "cancelled in the queue": _cancelled_in_the_queue,
}
