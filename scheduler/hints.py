"""Hints to the scheduler's workers to look now (portal/hints.py)."""

from __future__ import annotations

from django.apps import apps

from portal.hints import Hint, after_commit
from portal.hints import merged as merged

TICK = "scheduler.tasks.tick"


def tick() -> None:
    """Ask the scheduling loop to look now.

    Hints that are asked for before the next look are merged into one.
    """
    after_commit(Hint(TICK, "control", given=_newest))


def refresh_options() -> None:
    """Ask for options to be computed anew for jobs whose options are stale."""
    after_commit(Hint("scheduler.tasks.refresh_options", "work"))


def learn() -> None:
    """Ask the predictor's training to see whether there is enough that is new."""
    after_commit(Hint("knowledge.tasks.train", "work"))


def read_scripts() -> None:
    """Ask for a language model to read a script that waits for it."""
    after_commit(Hint("knowledge.tasks.read_scripts", "work"))


def explain_failures() -> None:
    """Ask for the causes of new failures to be read from their logs."""
    after_commit(Hint("scheduler.tasks.explain_failures", "work"))


def forecast_starts() -> None:
    """Ask for the queue to be played ahead: a plan has changed."""
    after_commit(Hint("scheduler.tasks.forecast_starts", "predict"))


def find_changes() -> None:
    """Ask for the changes that would help a waiting job that somebody looks at."""
    after_commit(Hint("scheduler.tasks.find_changes", "predict"))


def answer_starts() -> None:
    """Ask for the next question about the start of a job to be answered."""
    after_commit(Hint("scheduler.tasks.answer_starts", "predict"))


def simulate() -> None:
    """Ask for the next piece of a simulation that waits."""
    after_commit(Hint("scheduler.tasks.simulate", "work"))


def markets() -> None:
    """Ask for markets to be looked after: nodes are wanted, or go back."""
    after_commit(Hint("scheduler.tasks.markets", "work"))


def calibrate() -> None:
    """Ask for what is due in calibrations of nodes."""
    after_commit(Hint("scheduler.tasks.calibrate", "work"))


def newest_tick() -> int:
    """Return the number of the tick that was the last to begin.

    It may have looked too early for this hint.
    """
    epoch = apps.get_model("scheduler", "Epoch")
    return epoch._default_manager.values_list("number", flat=True).first() or 0


def _newest() -> dict[str, int]:
    return {"after": newest_tick()}
