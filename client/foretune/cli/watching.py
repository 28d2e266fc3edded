"""One job, followed: a live line on a terminal, a line for each change elsewhere."""

from __future__ import annotations

import re
import shutil
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from .base import Session, note, on_terminal
from .errors import FAIL_ON, INTERRUPTED

if TYPE_CHECKING:
    from .._models import JobFields, Update

LINE_EVERY_S = 10.0  # without a terminal, one line of progress this often
SECOND_CTRL_C_S = 3.0
Judge = Callable[["JobFields"], str]


def rule(text: str) -> Judge:
    """What --fail-on says, as a function: why the job fails it, or nothing.

    Raises UsageError.
    """
    if text == "outside-promise":
        return _outside_promise
    found = re.fullmatch(r"loss\s*>\s*(\d+(?:\.\d+)?)", text, re.ASCII)
    if not found:
        raise click.UsageError(f"--fail-on {text}: write `outside-promise`, or e.g. `loss>1.5`.")
    most = float(found[1])

    def too_high(job: JobFields) -> str:
        loss = job.progress.loss if job.progress else None
        if loss is None or loss > most:
            return f"the loss is {'unknown' if loss is None else f'{loss:.4g}'}, above {most:g}"
        return ""

    return too_high


def _outside_promise(job: JobFields) -> str:
    outside = [line.name for line in job.comparison if line.inside is False]
    return f"not as promised: {', '.join(outside)}" if outside else ""


def watch_until_it_ends(
    session: Session,
    job: str,
    *,
    judged: Judge | None = None,
    timeout: float | None = None,
    logs: bool | None = None,
) -> int:
    """Follow a job; returns the exit code.

    Raises JobFailed, WaitedTooLong and what requests raise.

    logs: show its log as well; unless said, on a terminal.
    """
    screen = Screen(session)
    show_logs = logs if logs is not None else screen.live and not session.as_json
    jobs = session.client.jobs
    try:
        for update in jobs.follow(job, logs=show_logs, timeout=timeout):
            screen.show(update)
    except KeyboardInterrupt:
        screen.clear()
        return _left(session, job)
    finally:
        screen.clear()
    ended = jobs.get(job)
    if ended.state != "succeeded":
        raise jobs.failure(ended)
    if not session.as_json:
        click.echo(result(ended))
        note(f"foretune download {job} -o DIR brings what it produced.")
    if judged and (why := judged(ended)):
        note(f"foretune: {why} (--fail-on)")
        return FAIL_ON
    return 0


class Screen:
    """Where updates go: stderr for people, stdout for programs."""

    def __init__(self, session: Session) -> None:
        self.session, self.live = session, sys.stderr.isatty()
        self.said, self.said_at = "", 0.0

    def show(self, update: Update) -> None:
        if self.session.as_json:
            told: dict[str, Any] = {"kind": update.kind}
            if update.kind in ("log", "away"):
                told["text"] = update.text
            else:
                told["job"] = update.job.raw
            return self.session.line(told)
        from .._tables import plain

        if update.kind == "log":
            self.clear()
            return click.echo(plain(update.text, lines=True).rstrip("\n"), err=True)
        text = "the portal is away; waiting for it" if update.kind == "away" else plain(line(update.job))
        if self.live:
            room = shutil.get_terminal_size().columns - 1
            return click.echo(f"\r\x1b[2K{text[:room]}", err=True, nl=False)
        return self._line_now_and_then(update.kind, text)

    def _line_now_and_then(self, kind: str, text: str) -> None:
        now = time.monotonic()
        if text != self.said and (kind != "progress" or now - self.said_at >= LINE_EVERY_S):
            self.said, self.said_at = text, now
            note(text)

    def clear(self) -> None:
        """Take the live line away."""
        if self.live and not self.session.as_json:
            click.echo("\r\x1b[2K", err=True, nl=False)


def line(job: JobFields) -> str:
    """State, why it waits, step, loss, tokens/s, end with its interval."""
    from .._tables import moment

    parts = [f"[{job.state}]"]
    progress = job.progress
    if job.state == "queued":
        parts.append(job.waiting.text if job.waiting else "waiting for the scheduler")
        if job.expected:
            parts.append(f"starts {moment(job.expected.start_at)}")
    elif progress and not job.ended and job.stage:
        parts.append(job.stage)
    elif progress:
        parts.append(f"step {progress.step}/{progress.total_steps or '?'}")
        parts.append(f"loss {progress.loss:.4g}" if progress.loss is not None else "")
        rate = progress.tokens_per_second
        parts.append(f"{rate:,.0f} tokens/s" if rate is not None else "")
        if progress.end and not job.ended:
            end = progress.end
            parts.append(f"ends {_clock(end.at)} ({_clock(end.earliest)} to {_clock(end.latest)})")
        if progress.silent_since:
            parts.append(f"nothing heard since {_clock(progress.silent_since)}")
    return "  ".join(part for part in parts if part)


def _clock(at: Any) -> str:
    return f"{at.astimezone():%H:%M:%S}"


def result(job: JobFields) -> str:
    """Promised against actual, and the loss."""
    from .._models import Interval
    from .._tables import FIGURES, figure, predicted, table

    rows = []
    for one in job.comparison:
        promised = predicted(one.name, Interval(value=one.value, low=one.low, high=one.high), job.currency)
        inside = {True: "yes", False: "no", None: ""}[one.inside]
        rows.append(
            (FIGURES.get(one.name, one.name), promised, figure(one.name, one.actual, job.currency), inside)
        )
    parts = [table(rows, ("", "promised (80 %)", "actual", "inside"))] if rows else []
    if job.progress and job.progress.loss is not None:
        first = f"{job.first_loss:.4g} -> " if job.first_loss is not None else ""
        parts.append(f"loss {first}{job.progress.loss:.4g}")
    return "\n".join(parts)


def _left(session: Session, job: str) -> int:
    """After Ctrl-C the job goes on; a second one offers to cancel it."""
    note(f"The job goes on; `foretune watch {job}` comes back to it. Ctrl-C again: cancel it?")
    try:
        time.sleep(SECOND_CTRL_C_S if on_terminal() else 0.0)
    except KeyboardInterrupt:
        if click.confirm(f"Cancel {job}?", default=False, err=True):
            session.client.jobs.act(job, "cancel")
            note(f"{job} is being cancelled.")
    return INTERRUPTED
