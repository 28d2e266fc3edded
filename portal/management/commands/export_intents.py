"""Export sentences that jobs began with, of people who agreed to it."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from scheduler.selectors.analysis.readings import shared_sentences


class Command(BaseCommand):
    help = (
        "Print a JSON object a line for each sentence that a job began with, for new labels; only of people "
        "who agreed to it in their settings. Names of people and ids of jobs are left out."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--with-consent", action="store_true", help="Required: nothing else is ever exported."
        )

    def handle(self, **options: Any) -> None:
        if not options["with_consent"]:
            raise CommandError("--with-consent: only sentences of people who agreed can be exported; add it")
        for row in shared_sentences():
            self.stdout.write(json.dumps(row, ensure_ascii=False))
