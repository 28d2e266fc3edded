"""Changes played ahead beside the queue as it is, with the same luck."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite
from statistics import mean, median

from knowledge.core.domain.types import Option
from scheduler.core.ahead.durations import Draws
from scheduler.core.ahead.forecast import More
from scheduler.core.ahead.play import Lived, QueuePlay
from scheduler.core.ahead.play_input import PlayInput
from scheduler.core.changes.possible import PossibleChange

PLAYS = 16
SCREENING = 2  # plays after which only the most helpful are tried on
KEPT = 8
Share = Callable[[int], More]  # of so many plays that are still to come: what bounds the next one


@dataclass(slots=True)
class TriedChange:
    """One change in every play so far.

    lives: of the jobs that wait now. options: with which the job ran last; None where it did not start.
    gains: seconds by which it started sooner than without the change. cut: was it ended by its time limit?
    """

    possible: PossibleChange
    lives: list[Mapping[str, Lived]] = field(default_factory=list)
    options: list[Option | None] = field(default_factory=list)
    gains: list[float] = field(default_factory=list)
    cut: list[bool] = field(default_factory=list)

    @property
    def gain_s(self) -> float:
        return median(self.gains) if self.gains else 0.0

    @property
    def unfinished(self) -> float:
        """The share of plays in which its time limit ends it before it is done."""
        return mean(self.cut) if self.cut else 0.0


@dataclass(slots=True)
class Trials:
    """Plays of the queue as it is, and of each change that was tried to the end."""

    as_it_is: list[Mapping[str, Lived]] = field(default_factory=list)
    cut: list[bool] = field(default_factory=list)
    changes: list[TriedChange] = field(default_factory=list)


def try_changes(
    given: PlayInput, job: str, possible: Sequence[PossibleChange], share: Share | None = None
) -> Trials:
    """Play each change as often as the queue as it is, draw by draw.

    share: makes what a play asks before each of its decisions, given how many plays are to come. A change
    whose play was cut short before the job started promises nothing.
    """
    trials = Trials(changes=[TriedChange(one) for one in possible])
    draws, limit = Draws(given.seed), share or (lambda _: _always)
    for number in range(PLAYS):
        if number and not limit(1)():
            break
        left = (1 + len(trials.changes)) * (SCREENING - number) if number < SCREENING else len(trials.changes)
        without, _, cut = _played(given, job, draws, number, limit(max(1, left)))
        trials.as_it_is.append(without)
        trials.cut.append(cut)
        for tried in trials.changes:
            _try(tried, job, without, draws, number, limit(max(1, left)))
        if number == SCREENING - 1:
            helping = [tried for tried in trials.changes if tried.gain_s > 0]
            trials.changes = sorted(helping, key=lambda tried: -tried.gain_s)[:KEPT]
        if not trials.changes:
            break
    return trials


def _try(
    tried: TriedChange, job: str, without: Mapping[str, Lived], draws: Draws, number: int, more: More
) -> None:
    lives, option, cut = _played(tried.possible.given, job, draws, number, more)
    tried.lives.append(lives)
    tried.options.append(option)
    tried.cut.append(cut)
    before, after = _start(without, job), _start(lives, job)
    tried.gains.append(before - after if isfinite(after) else (0.0 if not isfinite(before) else -inf))


def _start(lives: Mapping[str, Lived], job: str) -> float:
    life = lives.get(job)
    return inf if life is None or life.start is None else life.start


def _played(
    given: PlayInput, job: str, draws: Draws, number: int, more: More
) -> tuple[Mapping[str, Lived], Option | None, bool]:
    play = QueuePlay(given, draws, number)
    lives = play.run(more)
    life = play.lives.get(job)
    return lives, life.info.holds.option if life and life.info.holds else None, bool(life and life.cut)


def _always() -> bool:
    return True
