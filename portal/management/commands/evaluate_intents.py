"""Score the reading of sentences on a labelled set."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from portal.intents.evaluate.labelled import BadSet, cases_of, evaluate


class Command(BaseCommand):
    help = "Read the sentences of a labelled set and print the scores; docs/intents.md says what they mean."
    requires_system_checks = ()  # all context stands in the set: no database is asked

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--set", required=True, type=Path, metavar="FILE.jsonl")
        parser.add_argument("--json", type=Path, metavar="OUT", help="Write the scores there as well.")

    def handle(self, **options: Any) -> None:
        try:
            scores = evaluate(cases_of(options["set"]), settings.LANGUAGE_SERVERS["intent"])
        except BadSet as wrong:
            raise CommandError(str(wrong)) from wrong
        text = json.dumps(scores, indent=1)
        if out := options["json"]:
            try:
                out.write_text(text + "\n", encoding="utf-8")
            except OSError as wrong:
                raise CommandError(f"--json {out} cannot be written ({wrong})") from wrong
        self.stdout.write(text)
