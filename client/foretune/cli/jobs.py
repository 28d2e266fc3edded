"""Jobs: listed, explained, followed, stopped, downloaded."""

from __future__ import annotations

import csv
import sys
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .base import Session, command, dumps, named, note, pairs

if TYPE_CHECKING:
    from .._models import JobFields

ONE = click.argument("job")
STATES = ("live", "queued", "running", "pausing", "paused", "succeeded", "failed", "cancelled")


def columns() -> dict[str, Any]:
    from .._tables import moment

    return {
        "id": lambda job: job["id"],
        "state": lambda job: job["state"],
        ">step": lambda job: _step(job.get("progress")),
        ">loss": lambda job: _loss(job.get("progress")),
        "~name": lambda job: job["name"],
        "submitted": lambda job: moment(job["created_at"]),
        "~model": lambda job: job["model"],
        "ended": lambda job: moment(job["ended_at"]),
    }


def _step(progress: Mapping[str, Any] | None) -> str:
    return f"{progress['step']}/{progress['total_steps'] or '?'}" if progress and progress["step"] else ""


def _loss(progress: Mapping[str, Any] | None) -> str:
    return f"{progress['loss']:.4g}" if progress and progress["loss"] is not None else ""


@command("ls")
@click.option("--state", "states", multiple=True, type=click.Choice(STATES), help="Only jobs in this state.")
@click.option("--all", "everybodys", is_flag=True, help="All that you may see, not only yours.")
@click.option("--team", help="Only jobs of this team.")
@click.option("--model", help="Only jobs of this model.")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True)
def ls_command(
    session: Session, states: Sequence[str], everybodys: bool, team: str | None, model: str | None, limit: int
) -> None:
    """List your jobs, newest first."""
    filters = {"state": states, "team": team, "model": model, "owner": None if everybodys or team else "me"}
    found = session.client.jobs.list(**filters, limit=min(limit, 100))
    session.rows([job.raw for job in islice(found, limit)], columns(), none="No jobs.")


@command("show")
@ONE
@click.option("--request", "asked", is_flag=True, help="What was asked, as a job.yaml.")
def show_command(session: Session, job: str, asked: bool) -> None:
    """Show one job: promise, progress, settings and result."""
    client = session.client
    shown = client.jobs.find(job)
    if asked:
        click.echo(dumps(client.request("GET", f"jobs/{shown.id}/request/")))
    else:
        session.show(shown.raw, lambda: _whole(shown))


def _whole(job: JobFields) -> str:
    from .._tables import PARAMETERS, choices, moment, promise_rows, table
    from .base import width
    from .watching import line, result

    parts = [
        pairs(
            [
                ("job", job.id),
                ("name", job.name),
                ("owner", job.owner.name if job.owner else ""),
                ("team", job.team.name if job.team else ""),
                ("model", job.model),
                ("data", job.training_file),
                ("goal", job.goal),
                ("submitted", moment(job.created_at)),
                ("ended", moment(job.ended_at)),
                ("now", line(job)),
                ("error", job.error.message if job.error else ""),
            ]
        )
    ]
    if job.comparison:
        parts.append(result(job))
    elif job.promise:
        parts.append(pairs(promise_rows(job.promise, job.currency)))
    if job.params:
        parts.append(table(choices(job.params), PARAMETERS, width=width()))
    return "\n\n".join(parts)


@command("why")
@ONE
def why_command(session: Session, job: str) -> None:
    """Say why a job waits, why it runs where it runs, or why it failed."""
    client = session.client
    shown = client.jobs.find(job)
    decisions = client.request("GET", f"jobs/{shown.id}/decisions/")["data"]
    failure = client.request("GET", f"jobs/{shown.id}/failure/")["failure"]
    told = {"state": shown.state, "wait": shown.raw.get("wait"), "failure": failure, "decisions": decisions}
    session.show(told, lambda: _reasons(shown, decisions, failure))


def _reasons(
    job: JobFields, decisions: Sequence[Mapping[str, Any]], failure: Mapping[str, Any] | None
) -> str:
    from .._tables import moment

    rows = [("state", job.state)]
    if job.waiting:
        rows.append(("waits", job.waiting.text))
    if job.expected:
        rows.append(("starts", moment(job.expected.start_at)))
    if job.error:
        rows.append(("error", job.error.message))
    if failure:
        rows += [("cause", str(failure["sentence"])), ("remedy", str(failure["remedy"]))]
        if failure["line"]:
            rows.append(("log", f"line {failure['line']['number']}: {failure['line']['text']}"))
    if decisions and not job.ended:
        rows += [("here", str(decisions[0]["here"])), ("now", str(decisions[0]["now"]))]
    return pairs(rows)


@command("watch")
@ONE
@click.option("--logs/--no-logs", default=None, help="Show its log as well (on a terminal it is shown).")
@click.option("--fail-on", metavar="RULE", help="Exit with 7 if `outside-promise`, or e.g. `loss>1.5`.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="Watch no longer than this; exit with 124.",
)
def watch_command(
    session: Session, job: str, logs: bool | None, fail_on: str | None, timeout: float | None
) -> int:
    """Follow a job until it has ended; Ctrl-C leaves the job as it is."""
    from .watching import rule, watch_until_it_ends

    judged = rule(fail_on) if fail_on else None
    found = session.client.jobs.find(job)
    return watch_until_it_ends(session, found.id, judged=judged, timeout=timeout, logs=logs)


@command("logs")
@ONE
@click.option("-f", "--follow", is_flag=True, help="Go on until the job has ended.")
@click.option("--tail", type=click.IntRange(1), metavar="N", help="Only the last N lines.")
def logs_command(session: Session, job: str, follow: bool, tail: int | None) -> None:
    """Print a job's log."""
    if follow and tail:
        raise click.UsageError("--tail and --follow do not go together.")
    jobs = session.client.jobs
    found = jobs.find(job)
    if follow:
        for update in jobs.follow(found, logs=True):
            if update.kind == "log":
                _piece(session, update.text)
        return
    for piece in jobs.tail(found, tail) if tail else jobs.log_pieces(found):
        _piece(session, piece)


def _piece(session: Session, text: str) -> None:
    if session.as_json:
        return session.line({"text": text})
    from .._tables import plain

    return click.echo(plain(text, lines=True), nl=False)


@command("metrics")
@ONE
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@click.option("--points", type=click.IntRange(2, 5000), help="Thin them to so many rows.")
def metrics_command(session: Session, job: str, as_csv: bool, points: int | None) -> None:
    """Print what was measured by step."""
    jobs = session.client.jobs
    rows = jobs.metrics(jobs.find(job), points=points)
    names = [name for name in (rows[0] if rows else {}) if name != "id"]
    if as_csv:
        writer = csv.DictWriter(sys.stdout, names, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return
    shown = {f">{name}": _of_row(name) for name in names if name != "at"}
    session.rows(rows, shown, none="Nothing was measured yet.")


def _of_row(name: str) -> Any:
    def shown(row: Mapping[str, Any]) -> str:
        value = row.get(name)
        if value is None:
            return ""
        return f"{value:.4g}" if isinstance(value, float) else str(value)

    return shown


@command("events")
@ONE
@click.option("-f", "--follow", is_flag=True, help="Go on until the job has ended.")
def events_command(session: Session, job: str, follow: bool) -> None:
    """Print what happened to a job, oldest first."""
    client = session.client
    found, last = client.jobs.find(job), 0

    def tell() -> int:
        number = last
        for event in client.request("GET", f"jobs/{found.id}/events/", query={"after": last})["data"]:
            number = max(number, int(event["number"]))
            _event(session, event)
        return number

    last = tell()
    if follow:
        for _ in client.jobs.follow(found):
            last = tell()


def _event(session: Session, event: Mapping[str, Any]) -> None:
    from .._tables import moment

    if session.as_json:
        return session.line(event)
    moved = f"{event['old']} -> {event['new']}" if event.get("old") != event.get("new") else ""
    words = (moment(event["at"]), str(event["type"]), moved, str(event.get("reason") or ""))
    return click.echo("  ".join(word for word in words if word))


def _verb(name: str, done: str, help_text: str) -> click.Command:
    @command(name, help_text=help_text)
    @click.argument("jobs", nargs=-1, required=True, metavar="JOB...")
    def verb(session: Session, jobs: Sequence[str]) -> None:
        found = [session.client.jobs.find(job) for job in jobs]  # all are known before any is touched
        told = [session.client.jobs.act(job, name) for job in found]
        if session.as_json:
            for job in told:
                session.line(job.raw)
        else:
            for job in told:
                click.echo(f"{job.id}  {job.state if job.state in done.split() else done.split()[-1]}")

    return verb


cancel_command = _verb("cancel", "cancelled cancelling", "Cancel jobs.")
pause_command = _verb("pause", "paused pausing", "Pause jobs; a checkpoint is kept.")
resume_command = _verb("resume", "running queued", "Let paused jobs go on.")


@command("diff")
@click.argument("first")
@click.argument("second")
def diff_command(session: Session, first: str, second: str) -> None:
    """Compare two jobs: what was set, and what came out."""
    jobs = session.client.jobs
    both = (jobs.find(first), jobs.find(second))
    values = [_compared(job) for job in both]
    names = dict.fromkeys([*values[0], *values[1]])
    rows = [
        {"name": name, "first": values[0].get(name, ""), "second": values[1].get(name, "")}
        for name in names
        if values[0].get(name) != values[1].get(name)
    ]
    session.rows(
        rows,
        {
            "": lambda row: row["name"],
            both[0].id: lambda row: str(row["first"]),
            both[1].id: lambda row: str(row["second"]),
        },
        none="They were set alike, and the same came out.",
    )


def _compared(job: JobFields) -> dict[str, Any]:
    from .._tables import FIGURES, figure

    shown = {"model": job.model, "data": job.training_file, "goal": job.goal, "state": job.state}
    shown |= {name: str(one.value) for name, one in (job.params or {}).items() if one.value is not None}
    shown |= {
        FIGURES.get(one.name, one.name): figure(one.name, one.actual, job.currency) for one in job.comparison
    }
    if job.progress and job.progress.loss is not None:
        shown["loss"] = f"{job.progress.loss:.4g}"
    return shown


@command("download")
@ONE
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder; else one of the job's name.",
)
def download_command(session: Session, job: str, output: Path | None) -> None:
    """Download what a job produced: the adapter, its card, the metrics.

    What broke off goes on where it did; what is there, whole, is not brought again.
    """
    jobs = session.client.jobs
    found = jobs.find(job)
    folder = output or Path(found.id)
    paths = jobs.download(found, folder)
    if not paths:
        note(f"{found.id} has no files.")
    session.show(
        {"folder": str(folder), "files": [str(path) for path in paths]}, lambda: "\n".join(map(str, paths))
    )


@command("open")
@ONE
@click.option("--print", "only_print", is_flag=True, help="Only print the address.")
def open_command(session: Session, job: str, only_print: bool) -> None:
    """Open a job's page in the browser."""
    found = session.client.jobs.find(job)
    page = f"{session.client.transport.url}/jobs/{found.id}/"
    session.show({"page": page}, lambda: page)
    if not only_print:
        click.launch(page)


def shown_owner(job: Mapping[str, Any]) -> str:
    return named(job.get("owner"))
