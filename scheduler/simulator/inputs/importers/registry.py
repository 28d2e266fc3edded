"""Importers of public traces, chosen by the columns of a file."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from scheduler.simulator.errors import TraceError
from scheduler.simulator.inputs import files
from scheduler.simulator.inputs.cells import T, converted, number, whole
from scheduler.simulator.inputs.importers import profiled_traces, rigid_traces
from scheduler.simulator.inputs.importers.native import native
from scheduler.simulator.inputs.trace import (
    COLUMNS,
    CapacityChange,
    Closure,
    Refusal,
    Trace,
    TraceJob,
    predecessors,
)


@dataclass(frozen=True, slots=True)
class Importer:
    """A reader of one trace's rows.

    Rows with these columns are this trace's.
    wall_clock: its times count from its first job.
    separate: its groups are traces of their own, each with its own clock.
    """

    name: str
    columns: frozenset[str]
    job: Callable[[files.Row], TraceJob]
    wall_clock: bool = False
    separate: bool = False


def _columns(text: str) -> frozenset[str]:
    return frozenset(text.split(","))


# the first that fits wins, so the one with the fewest columns stands last
IMPORTERS = (
    Importer("philly", _columns("job_id,submit_time,duration_s,gpus,vc"), rigid_traces.philly, True),
    Importer(
        "venus", _columns("job_id,submit_time,duration_s,gpus,duration_capped"), rigid_traces.venus, True
    ),
    Importer("venus-bench", _columns("job_id,submit_s,duration_s,gpus,pred_ebm"), rigid_traces.venus_bench),
    Importer(
        "helios", _columns("job_id,user,node_num,gpu_num,submit_time,duration"), rigid_traces.helios, True
    ),
    Importer("openb", _columns("name,num_gpu,gpu_milli,gpu_spec,qos,creation_time"), rigid_traces.openb),
    Importer("sia", _columns("name,time,application,num_replicas,batch_size"), profiled_traces.sia),
    Importer(
        "gavel-lists",
        _columns("trace,idx,job_type,total_steps,scale_factor"),
        profiled_traces.gavel_physical,
        separate=True,
    ),
    Importer("gavel", _columns("vc,idx,job_type,total_steps,scale_factor"), profiled_traces.gavel_arrivals),
    Importer("elasticflow", _columns("job_id,submit_time,ddl,num_gpu,duration"), rigid_traces.elasticflow),
    Importer("tiresias", _columns("job_id,num_gpu,submit_time,iterations,duration"), rigid_traces.tiresias),
    Importer("pai", _columns("job_id,submit_s,duration_s,gpus"), rigid_traces.pai),
    Importer("foretune", _columns("job_id,submit_s,gpus"), native),
)


def load_trace(path: Path, group: str | None = None) -> Trace:
    """Read a public trace or our own schema.

    A folder holds `jobs.csv` and its side files. Bad rows are refused one by one, with the
    reason; times of wall clocks count from the first job. Raises TraceError when the file is no
    known trace, no row of it is good, or it holds several traces and no group says which.

    group: only the jobs of this virtual cluster, queue or named trace.
    """
    table = _jobs_file(path)
    importer = _importer(table)
    jobs, refused = _read(importer, table)
    if not jobs:
        first = f"; row {refused[0].row}: {refused[0].reason}" if refused else ""
        raise TraceError(f"{table}: no row can be simulated{first}")
    jobs = _of_group(jobs, group, importer, table)
    jobs.sort(key=lambda job: job.submit_s)
    if importer.wall_clock:
        origin = jobs[0].submit_s
        for job in jobs:
            job.count_from(origin)
    meta = {"source": importer.name, "origin": "first job" if importer.wall_clock else "as recorded"}
    _refuse_circles(jobs, table)
    return Trace(
        jobs=tuple(jobs),
        refused=tuple(refused),
        capacity=_capacity(path),
        closures=_closures(path),
        meta=meta,
    )


def _refuse_circles(jobs: list[TraceJob], table: Path) -> None:
    after = {job.job_id: predecessors(job) for job in jobs if job.may_have_to_wait()}
    for job in jobs if any(after.values()) else ():
        if job.array and job.array != job.job_id:
            after.setdefault(job.array, []).append(job.job_id)  # an array ends once its jobs have
    try:
        TopologicalSorter(after).prepare()
    except CycleError as circle:
        raise TraceError(f"{table}: jobs wait for each other: {' after '.join(circle.args[1])}") from None


def _of_group(jobs: list[TraceJob], group: str | None, importer: Importer, table: Path) -> list[TraceJob]:
    groups = sorted({job.group for job in jobs})
    if group is None and importer.separate and len(groups) > 1:
        raise TraceError(f"{table}: holds {len(groups)} traces; name one with --group: {', '.join(groups)}")
    if group is not None and group not in groups:
        raise TraceError(f"--group: {table} has no group {group!r}; there are {', '.join(groups) or 'none'}")
    return jobs if group is None else [job for job in jobs if job.group == group]


def _jobs_file(path: Path) -> Path:
    if not path.is_dir():
        return path
    for name in ("jobs.csv", "jobs.csv.gz"):
        if (path / name).exists():
            return path / name
    raise TraceError(f"{path}: the folder holds no jobs.csv")


def _importer(table: Path) -> Importer:
    header = frozenset(files.read_header(table))
    for importer in IMPORTERS:
        # PAI's columns are some of ours: with any other of ours beside them the file is in our schema.
        ours = importer.name == "pai" and header & set(COLUMNS) > importer.columns
        if importer.columns <= header and not ours:
            return importer
    known = "; ".join(f"{one.name}: {', '.join(sorted(one.columns))}" for one in IMPORTERS)
    raise TraceError(f"{table}: its columns are no known trace's. Known are {known}")


def _read(importer: Importer, table: Path) -> tuple[list[TraceJob], list[Refusal]]:
    jobs: dict[str, TraceJob] = {}
    refused: list[Refusal] = []
    for row, job, problem in _converted(importer, table):
        if job is not None and job.job_id in jobs:
            problem = "its job_id was seen before"
        if job is None or problem:
            refused.append(Refusal(row, job.job_id if job else "", problem or ""))
        else:
            jobs[job.job_id] = job
    return list(jobs.values()), refused


def _converted(importer: Importer, table: Path) -> Iterator[tuple[int, TraceJob | None, str | None]]:
    last = files.read_header(table)[-1]
    for count, row in enumerate(files.read_rows(table), start=1):
        if None in row or row[last] is None:
            yield count, None, "it has more or fewer cells than there are columns"
            continue
        try:
            job = importer.job(row)
        except KeyError as missing:
            raise TraceError(f"{table}: {importer.name} needs the column {missing}, too") from missing
        except (ValueError, OverflowError) as error:
            yield count, None, str(error)
        else:
            yield count, job, job.problem()


def _capacity(path: Path) -> tuple[CapacityChange, ...]:
    needs = "t_s, node and available as numbers"
    changes = _side_rows(path, "capacity.csv", _capacity_change, needs)
    return tuple(sorted(changes, key=lambda change: change.t_s))


def _closures(path: Path) -> tuple[Closure, ...]:
    needs = "from_s and until_s as numbers, and node"
    return tuple(_side_rows(path, "windows.csv", _closure, needs))


def _side_rows(path: Path, name: str, convert: Callable[[files.Row], T], needs: str) -> Iterator[T]:
    """The rows of a file in the trace's folder; none if there is no such file."""
    side = path / name
    if path.is_dir() and side.exists():
        yield from converted(files.read_rows(side), convert, file=name, needs=needs)


def _capacity_change(row: files.Row) -> CapacityChange:
    return CapacityChange(number(row, "t_s"), row["node"], whole(row, "available"))


def _closure(row: files.Row) -> Closure:
    begins, ends = number(row, "from_s"), number(row, "until_s")
    if not 0 <= begins < ends < math.inf:
        raise ValueError(
            f"from_s is {begins:g} and until_s {ends:g}; it must begin at 0 or later, and end after"
        )
    return Closure(begins, ends, row["node"], row.get("group") or "")
