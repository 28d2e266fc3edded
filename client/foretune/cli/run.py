"""Plan, confirm, submit."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .base import Session, command, note, on_terminal, width

if TYPE_CHECKING:
    from .._job_file import JobFile
    from .._models import Plan

HERE = click.Path(path_type=Path, dir_okay=False, exists=True)
USUAL_FILE = Path("job.yaml")
PATIENCE_S = 5.0  # with the forecast of a start


def _job_options(function: Any) -> Any:
    """What describes a job: a file, and what comes before it."""
    for option in reversed(
        (
            click.argument(
                "job_file", type=click.Path(path_type=Path, dir_okay=False, exists=True), required=False
            ),
            click.option("-m", "--model", help="The base model, e.g. builtin/tiny-llama."),
            click.option("-d", "--data", help="Training data: a path, or the id of an uploaded file."),
            click.option(
                "--set",
                "settings",
                multiple=True,
                metavar="NAME=VALUE",
                help="A parameter or a field of the job.",
            ),
            click.option("--goal", help="balanced, fastest, cheapest, deadline or budget."),
            click.option("--name", help="A name for the job."),
        )
    ):
        function = option(function)
    return function


@command("run")
@_job_options
@click.option("--dry-run", is_flag=True, help="Show the plan and submit nothing.")
@click.option("--watch", is_flag=True, help="Follow the job until it has ended.")
@click.option("-y", "--yes", is_flag=True, help="Submit without asking.")
@click.option("--fail-on", metavar="RULE", help="Exit with 7 if `outside-promise`, or e.g. `loss>1.5`.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="Watch no longer than this; exit with 124.",
)
def run_command(
    session: Session,
    dry_run: bool,
    watch: bool,
    yes: bool,
    fail_on: str | None,
    timeout: float | None,
    **described: Any,
) -> int:
    """Plan a job, show the plan, ask, and submit it.

    The job comes from a file (job.yaml, if neither that nor -m is given) and from options, which come first.
    """
    from .watching import rule, watch_until_it_ends

    judged = rule(fail_on) if fail_on else None
    if not (yes or dry_run or on_terminal()):
        raise click.UsageError("Nobody can be asked here: --yes submits, --dry-run only shows the plan.")
    file = _file(**described)
    with _located(file):
        fields = _fields(session, file, **described)
        plan = session.client.recommend(**_first_of_matrix(fields, file))
        if dry_run:
            session.show(plan.raw, lambda: _text(plan, file, starts=_starts(session, fields)))
            return 0
        if not session.as_json or not yes:
            note(_text(plan, file, starts="" if yes else _starts(session, fields)))
        if not yes:
            click.confirm("Submit?", default=True, abort=True, err=True)
        if file is not None and file.matrix:
            limit: dict[str, Any] = {"limit": file.limit} if file.limit is not None else {}
            array = session.client.jobs.submit_array(file.matrix, **fields, **limit)
            ids = [str(job["id"]) for job in array.raw["jobs"]]
            _told(session, array.raw, f"{array.id} with {len(ids)} jobs")
        else:
            job = session.client.jobs.submit(plan)
            ids = [job.id]
            _told(session, job.raw, job.id)
    if not watch:
        return 0
    return max(watch_until_it_ends(session, one, judged=judged, timeout=timeout) for one in ids)


@command("recommend")
@_job_options
def recommend_command(session: Session, **described: Any) -> None:
    """Show what a job would take and what is recommended; submit nothing."""
    file = _file(**described)
    with _located(file):
        fields = _fields(session, file, **described)
        plan = session.client.recommend(**_first_of_matrix(fields, file))
    session.show(plan.raw, lambda: _text(plan, file, starts=_starts(session, fields)))


@command("retry")
@click.argument("job")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="What is to be different.")
@click.option("--watch", is_flag=True, help="Follow the job until it has ended.")
def retry_command(session: Session, job: str, settings: Sequence[str], watch: bool) -> int:
    """Submit a job once more, as it was asked for."""
    from .watching import watch_until_it_ends

    client = session.client
    body = client.request("GET", f"jobs/{client.jobs.find(job).id}/request/")
    made = client.jobs.submit(**_with_settings(body, settings))
    _told(session, made.raw, made.id)
    return watch_until_it_ends(session, made.id) if watch else 0


def _file(*, job_file: Path | None, model: str | None, **_: Any) -> JobFile | None:
    from .. import _job_file

    if job_file is None and model is None and USUAL_FILE.is_file():
        job_file = USUAL_FILE
    return _job_file.read(job_file) if job_file else None


def _fields(
    session: Session,
    file: JobFile | None,
    *,
    model: str | None,
    data: str | None,
    settings: Sequence[str],
    goal: str | None,
    name: str | None,
    **_: Any,
) -> dict[str, Any]:
    """The fields of the job, its files uploaded.

    Raises UsageError before anything is sent.
    """
    from .._settings import project

    given = {"model": model, "goal": goal, "name": name}
    fields = {
        **(file.fields if file else {}),
        **{field: value for field, value in given.items() if value is not None},
    }
    files = dict(file.files) if file else {}
    if data is not None:
        fields.pop("training_file", None)
        files["training_file"] = Path(data)
    fields = _with_settings(fields, settings)
    if team := project().team:
        fields.setdefault("team", team)
    if "model" not in fields:
        raise click.UsageError("Name a model: -m MODEL, or a job.yaml (`foretune init` writes one).")
    if "training_file" not in fields and "training_file" not in files:
        raise click.UsageError("Name the training data: -d FILE.")
    for field, path in files.items():
        fields[field] = _uploaded(session, path)
    return fields


def _uploaded(session: Session, path: Path) -> str:
    if not path.exists() and path.name.startswith("file-"):
        return path.name
    file = session.client.files.upload(path)
    note(f"{file.filename}: {file.rows:,} rows ({file.id})")
    return file.id


def _with_settings(fields: dict[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    from .._job_file import JOB_FIELDS, scalar

    fields = {**fields, "params": dict(fields.get("params") or {})}
    for one in settings:
        name, equals, value = one.partition("=")
        if not equals or not name:
            raise click.UsageError(f"--set {one}: write NAME=VALUE.")
        if name in JOB_FIELDS:
            fields[name] = scalar(value)
        else:
            fields["params"][name.removeprefix("params.")] = scalar(value)
    if not fields["params"]:
        del fields["params"]
    return fields


def _first_of_matrix(fields: dict[str, Any], file: JobFile | None) -> dict[str, Any]:
    if file is None or not file.matrix:
        return fields
    return {**fields, "params": {**fields.get("params", {}), **file.matrix[0]}}


def _starts(session: Session, fields: dict[str, Any]) -> str:
    """When it would start; a plan without that is one, too."""
    from .._errors import ForetuneError
    from .._tables import moment

    try:
        expected = session.client.expected_start(timeout=PATIENCE_S, **fields)
    except ForetuneError:
        return ""
    if expected is None:
        return ""
    latest = moment(expected.start_high) or "later"
    return f"It would start {moment(expected.start_at)} ({moment(expected.start_low)} to {latest})."


def _text(plan: Plan, file: JobFile | None, *, starts: str) -> str:
    from .._tables import plan_text

    text = plan_text(plan, width=width()) + (f"\n\n{starts}" if starts else "")
    if file is None or not file.matrix:
        return text
    return f"{text}\n\n{len(file.matrix)} jobs; this is the plan of the first."


def _told(session: Session, raw: object, text: str) -> None:
    if session.as_json:
        session.line(raw)
    else:
        click.echo(text)


@contextlib.contextmanager
def _located(file: JobFile | None) -> Iterator[None]:
    """Complaints of the portal about a job's file name its lines."""
    from .._errors import BadRequest
    from .._job_file import JobFileError

    try:
        yield
    except BadRequest as refused:
        if file is None or not refused.fields:
            raise
        raise JobFileError(file.located(refused)) from refused
