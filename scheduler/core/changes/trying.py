"""Changes played ahead beside the queue as it is, with the same luck."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from statistics import median
from typing import NamedTuple

from knowledge.core.domain.types import Option
from scheduler.core.ahead.durations import Draws, Spread
from scheduler.core.ahead.forecast import More
from scheduler.core.ahead.play import Lived, QueuePlay
from scheduler.core.ahead.play_input import PlayInput
from scheduler.core.changes.possible import PossibleChange

PLAYS = 16
LEAST_PLAYS = 3  # of a change, before anything is promised of it
SCREENING = 2  # plays after which only the most helpful are tried on
KEPT = 8
OF_OTHERS = 2  # plays that go on until the others have started as well
Share = Callable[[int], More]  # of so many plays that are still to come: these bound the next one


@dataclass(slots=True)
class TriedChange:
    """The results of a change in every play so far.

    lives: of the job. others: of all that wait now, without the change and with it. options: with which the
    job ran last; None where it did not start. gains: seconds by which it started sooner than without the
    change. unfinished: the chance that its time limit ends it before it is done.
    """

    possible: PossibleChange
    lives: list[Mapping[str, Lived]] = field(default_factory=list)
    others: list[tuple[Mapping[str, Lived], Mapping[str, Lived]]] = field(default_factory=list)
    options: list[Option | None] = field(default_factory=list)
    gains: list[float] = field(default_factory=list)
    unfinished: float = 0.0

    @property
    def gain_s(self) -> float:
        return median(self.gains) if self.gains else 0.0

    @property
    def option(self) -> Option | None:
        """With which the job would run most likely."""
        return usual_option(self.options)


@dataclass(slots=True)
class Trials:
    """Plays of the queue as it is, and of each change that was tried to the end."""

    as_it_is: list[Mapping[str, Lived]] = field(default_factory=list)
    options: list[Option | None] = field(default_factory=list)
    changes: list[TriedChange] = field(default_factory=list)
    unfinished: float = 0.0  # without a change

    def add(self, without: _Played, played: Sequence[_Played]) -> None:
        """Play the queue once more as it is, and with each change."""
        self.as_it_is.append(without.lives)
        self.options.append(without.option)
        for tried, one in zip(self.changes, played, strict=True):
            tried.lives.append(one.lives)
            tried.options.append(one.option)
            tried.gains.append(_gain(without, one))


def try_changes(
    given: PlayInput, job: str, possible: Sequence[PossibleChange], share: Share | None = None
) -> Trials:
    """Play each change as often as the queue as it is, until the job has started.

    share: makes what a play asks before each of its decisions, given how many plays are to come. A change
    whose play was cut short before the job started promises nothing; of the queue as it is, such a play says
    that the job starts no sooner than it came.
    """
    trials = Trials(changes=[TriedChange(one) for one in possible])
    draws, limit = Draws(given.seed), share or (lambda _: _always)
    for number in range(PLAYS):
        if number and not limit(1)():
            break
        left = (1 + len(trials.changes)) * max(1, LEAST_PLAYS - number)
        without = _Played.of(given, job, draws, number, limit(left))
        played = [_Played.of(one.possible.given, job, draws, number, limit(left)) for one in trials.changes]
        if number >= LEAST_PLAYS and any(one.unknown for one in (without, *played)):
            break  # the time is up
        trials.add(without, played)
        if number == SCREENING - 1:
            helping = [tried for tried in trials.changes if tried.gain_s > 0]
            trials.changes = sorted(helping, key=lambda tried: -tried.gain_s)[:KEPT]
            _look_at_others(trials, given, draws, limit)
        if not trials.changes:
            break
    trials.unfinished = _unfinished(given, job, trials.options)
    for tried in trials.changes:
        tried.unfinished = _unfinished(tried.possible.given, job, tried.options)
    return trials


def usual_option(options: Iterable[Option | None]) -> Option | None:
    by_place = {option.place: option for option in options if option}
    counts = Counter(option.place for option in options if option)
    return by_place[counts.most_common(1)[0][0]] if counts else None


def _unfinished(given: PlayInput, job: str, options: Sequence[Option | None]) -> float:
    """The chance that its time limit ends the job before it is done."""
    info = next(one for one in given.state.jobs if one.id == job)
    option = usual_option(options) or next(iter(info.options), None)
    if info.run_left_s is None or option is None or info.work_left <= 0:
        return 0.0
    again_s = 0.0 if info.first_started_at is None else info.restart_s
    return Spread(option.duration_s, given.past.usual_s).beyond((info.run_left_s - again_s) / info.work_left)


def _look_at_others(trials: Trials, given: PlayInput, draws: Draws, share: Share) -> None:
    """Play on until everybody has started, in half of the time that is left."""
    for number in range(OF_OTHERS):
        left = 2 * (OF_OTHERS - number) * (1 + len(trials.changes))
        before = QueuePlay(given, draws, number).run(share(left))
        for tried in trials.changes:
            after = QueuePlay(tried.possible.given, draws, number).run(share(left))
            tried.others.append((before, after))


def _gain(without: _Played, played: _Played) -> float:
    before, after = without.start, played.start
    if after is None:
        return 0.0 if before is None and not played.unknown else -inf
    if before is None:
        return without.reached - after if without.unknown else inf
    return before - after


class _Played(NamedTuple):
    """A play, and what it says of the job.

    start None: it does not start, or (unknown) the play was cut short before. reached: how far it came.
    """

    lives: Mapping[str, Lived]
    start: float | None
    option: Option | None
    unknown: bool
    reached: float

    @classmethod
    def of(cls, given: PlayInput, job: str, draws: Draws, number: int, more: More) -> _Played:
        play = QueuePlay(replace(given, asked=frozenset({job})), draws, number)
        lives = play.run(more)
        life, lived = play.lives.get(job), lives.get(job)
        start = lived.start if lived else None
        return cls(
            lives=lives,
            start=start,
            option=life.info.holds.option if life and life.info.holds else None,
            unknown=start is None and play.cut_short,
            reached=play.now,
        )


def _always() -> bool:
    return True
