"""Jobs of a trace that come after others, or after whole arrays."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from scheduler.simulator.inputs.trace import TraceJob, predecessors
from scheduler.simulator.world.runs import Run


class Dependencies:
    """The dependencies that jobs still wait for.

    A job or array that the trace does not name counts as one that has ended well. One that comes after the
    success of a job that failed, or of an array with such a job, is cancelled, and so is what comes after it
    in turn.
    """

    def __init__(self, jobs: Sequence[TraceJob]) -> None:
        self._arrays = {job.job_id: job.array for job in jobs if job.array}
        self._open: dict[str, int] = defaultdict(int)  # jobs of each array that have not ended
        for array in self._arrays.values():
            self._open[array] += 1
        self._left: dict[str, list[str]] = {}
        self._later: dict[str, list[str]] = defaultdict(list)
        self._needs: dict[str, frozenset[str]] = {}  # whose success
        self.cancelled: set[str] = set()
        dependent = [job for job in jobs if job.after or job.after_ended]
        named = {job.job_id for job in jobs} if dependent else set()
        for job in dependent:
            if earlier := [name for name in predecessors(job) if name in named or name in self._open]:
                self._left[job.job_id] = earlier
                self._needs[job.job_id] = frozenset(job.after.split("|"))
                for name in earlier:
                    self._later[name].append(job.job_id)

    def awaited(self, job: str) -> tuple[str, ...]:
        """Jobs and arrays that must end before this one may start."""
        return tuple(self._left.get(job, ())) if self._left else ()

    def end(self, job: str, *, succeeded: bool) -> list[str]:
        """End a job; return those that wait for less, or are cancelled, through this."""
        if not self._later:
            return []
        ended, failed = [job], [] if succeeded else [job]
        if array := self._arrays.get(job):
            self._open[array] -= 1
            ended += [] if self._open[array] else [array]
            failed += [] if succeeded else [array]
        found = [name for one in failed for name in self._later.get(one, ()) if one in self._needs[name]]
        self.cancelled.update(found)
        for one in ended:
            for name in self._later.pop(one, ()):
                self._left[name] = [other for other in self._left[name] if other != one]
                found.append(name)
        return list(dict.fromkeys(found))

    def ending(self, first: Run, runs: Mapping[str, Run], *, succeeded: bool) -> Iterable[Run]:
        """The job that has ended, and those that end with it.

        They come after its success, and it failed.
        """
        if self._later:
            return self._all_ending(first, runs, succeeded=succeeded)
        first.options = ()
        return (first,)

    def _all_ending(self, first: Run, runs: Mapping[str, Run], *, succeeded: bool) -> Iterator[Run]:
        ended = [(first, succeeded)]
        for run, well in ended:
            run.options = ()
            yield run
            for name in self.end(run.job.job_id, succeeded=well):
                later = runs.get(name)
                if later is None or not later.options:
                    continue
                later.await_only(self.awaited(name))
                if name in self.cancelled:
                    ended.append((later, False))
