"""Calibrate a node: run short real trainings on it.

Predictions for its GPU then rest on measurements.
"""

from __future__ import annotations

import re
import time
from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from knowledge.core.domain.wording import counted
from portal.accounts.models import User
from portal.clock import database_now
from scheduler.errors import BadParameters, IllegalTransition, SchedulerError
from scheduler.models import Calibration, Node
from scheduler.selectors.cluster.calibrations import measured
from scheduler.services.calibration.advance import CalibrationReplaced, advance
from scheduler.services.calibration.request import (
    USUAL_RUNS,
    CalibrationRequest,
    cancel_calibration,
    request_calibration,
)
from trainer.written import whole

UNITS = {"s": 1, "m": 60, "h": 3600}
OPTIONS = {"budget_s": "--budget", "models": "--model", "runs": "--runs"}
POLL_S = 2.0


def seconds(text: str) -> float:
    """`90s`, `20m` or `2h` in seconds."""
    found = re.fullmatch("([0-9]+)([smh])", text)
    if not found or int(found[1]) < 1:
        raise ArgumentTypeError(f"{text!r} is no time; write 90s, 20m or 2h")
    return int(found[1]) * float(UNITS[found[2]])


class Command(BaseCommand):
    help = "Run short trainings where the predictor is least certain, and report its error before and after."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("node", help="name of a registered node; runs go to nodes with its GPU model")
        parser.add_argument("--budget", type=seconds, default=1200.0, help="wall time: 90s, 20m, 2h (20m)")
        parser.add_argument("--runs", type=whole, default=USUAL_RUNS, help=f"at most so many ({USUAL_RUNS})")
        parser.add_argument(
            "--model",
            action="append",
            default=[],
            help="to train; repeatable; random/NAME: a catalogued architecture, nothing to download"
            " (left out: architectures that suit the GPU)",
        )
        parser.add_argument("--as", dest="username", help="user in whose name (the first administrator)")

    def handle(self, *, node: str, budget: float, runs: int, **options: Any) -> None:
        owner, machine = _owner(options["username"]), _node(node)
        wanted = CalibrationRequest(budget_s=budget, models=options["model"] or (), runs=runs)
        try:
            made = request_calibration(node=machine, wanted=wanted, actor=owner, now=database_now())
        except BadParameters as wrong:
            problems = [f"{OPTIONS[name]}: {message}" for name, message in wrong.fields.items()]
            raise CommandError("; ".join(problems)) from wrong
        except SchedulerError as refused:
            raise CommandError(str(refused)) from refused
        try:
            _follow(made)
        except KeyboardInterrupt:
            self.stdout.write("Interrupted: what has not ended is cancelled.")
            _cancel(made, owner)
        self._report(made)

    def _report(self, calibration: Calibration) -> None:
        runs = list(measured(calibration))
        for run in runs:
            rate = f"{run.tokens_per_second:,.0f} tokens/s" if run.tokens_per_second else run.status
            size = f"{run.per_device_batch_size} × {run.tokens_per_sample}"
            self.stdout.write(f"{run.model_name} {run.tuning} {size}: {rate}")
        if calibration.reason:
            self.stdout.write(calibration.reason)
        self.stdout.write(
            f"{counted(calibration.jobs.count(), 'job')}, {counted(len(runs), 'execution')} recorded."
        )
        if calibration.factors:
            before, after = calibration.factors
            self.stdout.write(
                f"Median error of {counted(calibration.judged_runs, 'run')}, each predicted from dissimilar"
                f" ones only: a factor of {before:.2f} without these runs, {after:.2f} with them."
            )


def _owner(username: str | None) -> User:
    users = User.objects.filter(is_active=True).order_by("pk")
    owner = (users.filter(username=username) if username else users.filter(is_staff=True)).first()
    if owner is None:
        raise CommandError("No such user: name one with --as, or create an administrator first")
    return owner


def _node(name: str) -> Node:
    found = Node.present.filter(name=name).first()
    if found is None:
        names = ", ".join(Node.present.values_list("name", flat=True)) or "none"
        raise CommandError(f"No node is called {name!r}; registered are: {names}")
    return found


def _follow(calibration: Calibration) -> None:
    """Advance a calibration until it has ended.

    Workers may do the same; where there are none this suffices.
    """
    while True:
        try:
            advance(calibration, now=database_now())
        except CalibrationReplaced:
            calibration.refresh_from_db()
        if calibration.ended_at:
            return
        time.sleep(POLL_S)
        calibration.refresh_from_db()


def _cancel(calibration: Calibration, owner: User) -> None:
    """Call it off, and its jobs at once; workers or the next call see to the rest."""
    try:
        cancel_calibration(calibration=calibration, actor=owner, now=database_now())
        advance(calibration, now=database_now())
    except (IllegalTransition, CalibrationReplaced):
        calibration.refresh_from_db()
