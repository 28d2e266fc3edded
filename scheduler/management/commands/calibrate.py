"""Calibrate a node: run short real trainings on it, so that predictions for its GPU rest on measurements."""

from __future__ import annotations

import re
import time
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Sequence
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from scheduler.errors import IllegalTransition
from scheduler.models import Job, Node
from scheduler.services import calibration
from scheduler.services.jobs import cancel_job
from scheduler.states import TERMINAL

UNITS = {"s": 1, "m": 60, "h": 3600}
POLL_S = 2.0
AT_ONCE = 2  # jobs waiting or running: what is left when the time is up is little


def seconds(text: str) -> float:
    """`90s`, `20m` or `2h` in seconds."""
    found = re.fullmatch(r"(\d+)([smh])", text)
    if not found or int(found[1]) < 1:
        raise ArgumentTypeError(f"{text!r} is no time; write 90s, 20m or 2h")
    return int(found[1]) * float(UNITS[found[2]])


class Command(BaseCommand):
    help = "Run short trainings where the predictor is least certain, and report its error before and after."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("node", help="name of a registered node; runs go to nodes with its GPU model")
        parser.add_argument("--budget", type=seconds, default=1200.0, help="wall time: 90s, 20m, 2h (20m)")
        parser.add_argument("--runs", type=int, default=60, help="at most so many (60)")
        parser.add_argument(
            "--model",
            action="append",
            help="to train; repeatable; random/NAME: a catalogued architecture, nothing to download"
            " (left out: architectures that suit the GPU)",
        )
        parser.add_argument("--as", dest="username", help="user in whose name (the first administrator)")

    def handle(self, *, node: str, budget: float, runs: int, **options: Any) -> None:
        owner, machine = self._owner(options["username"]), self._node(node)
        until = time.monotonic() + budget
        try:
            configs = calibration.plan(node=machine, models=options["model"], count=runs, budget_s=budget)
        except ValueError as wrong:
            raise CommandError(str(wrong)) from wrong
        if not configs:
            raise CommandError(
                "No run of these models fits this node within the budget; give a larger"
                " --budget or a smaller --model"
            )
        longest = max(config.tokens_per_sample for config in configs)
        file = calibration.training_file(owner=owner, longest=longest, now=timezone.now())
        jobs: list[Job] = []
        try:
            for config in configs:
                self._wait(jobs, AT_ONCE - 1, until)
                if time.monotonic() >= until:
                    break
                jobs.append(calibration.submit(config=config, owner=owner, file=file, now=timezone.now()))
            self._wait(jobs, 0, until)
        except KeyboardInterrupt:
            self.stdout.write("Interrupted: what has not ended is cancelled.")
        finally:
            self._cancel(jobs, owner)
        self._report(jobs)

    @staticmethod
    def _owner(username: str | None) -> Any:
        users = get_user_model().objects.filter(is_active=True).order_by("pk")
        owner = (users.filter(username=username) if username else users.filter(is_staff=True)).first()
        if owner is None:
            raise CommandError("No such user: name one with --as, or create an administrator first")
        return owner

    @staticmethod
    def _node(name: str) -> Node:
        found = Node.present.filter(name=name).first()
        if found is None:
            names = ", ".join(Node.present.values_list("name", flat=True)) or "none"
            raise CommandError(f"No node is called {name!r}; registered are: {names}")
        return found

    @staticmethod
    def _wait(jobs: Sequence[Job], left: int, until: float) -> None:
        """Until no more than `left` of the jobs are unfinished, or the time is up."""
        ids = [job.pk for job in jobs]
        unfinished = Job.objects.filter(pk__in=ids).exclude(state__in=TERMINAL)
        while unfinished.count() > left and time.monotonic() < until:
            time.sleep(POLL_S)

    @staticmethod
    def _cancel(jobs: Sequence[Job], owner: Any) -> None:
        for job in Job.objects.filter(pk__in=[job.pk for job in jobs]).exclude(state__in=TERMINAL):
            try:
                cancel_job(job=job, actor=owner, now=timezone.now())
            except IllegalTransition:
                continue  # it ended meanwhile

    def _report(self, jobs: Sequence[Job]) -> None:
        runs = list(calibration.executions(jobs))
        for run in runs:
            rate = f"{run.tokens_per_second:,.0f} tokens/s" if run.tokens_per_second else run.status
            size = f"{run.per_device_batch_size} x {run.tokens_per_sample}"
            self.stdout.write(f"{run.model_name} {run.method} {size}: {rate}")
        found = calibration.errors(runs)
        self.stdout.write(f"{len(jobs)} jobs, {len(runs)} executions recorded.")
        if found is not None:
            self.stdout.write(
                f"Median error on the last {found.runs} runs: {found.before:.0%} before,"
                f" {found.after:.0%} with what the earlier ones measured."
            )
