"""Train a predictor now."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from knowledge.predictors import training
from portal.clock import database_now


class Command(BaseCommand):
    help = "Train a predictor on all executions and promote it if it is not worse."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--if-due", action="store_true", help="only if enough is new")

    def handle(self, *, if_due: bool, **_: Any) -> None:
        try:
            version = training.train(now=database_now(), force=not if_due)
        except OSError as unwritable:
            raise CommandError(
                f"The predictor cannot be written, the one before answers: {unwritable}"
            ) from unwritable
        if version is None:
            self.stdout.write("No predictor was trained: nothing new is due, or below 40 rows to learn from.")
            return
        state = "active" if version.active else "not promoted"
        self.stdout.write(f"Predictor {version.number} from {version.rows} rows: {state}, {version.reason}.")
