"""Write the portal's own past as a trace for `simulate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.dateparse import parse_datetime

from knowledge.core.domain.wording import counted
from scheduler.selectors.trace import past_jobs, trace_jobs
from scheduler.simulator.inputs import files
from scheduler.simulator.inputs.trace import COLUMNS


class Command(BaseCommand):
    help = "Write ended jobs as a CSV trace (docs/simulator.md); owners and teams appear as numbers."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="where it goes; .csv or .csv.gz")
        parser.add_argument("--since", help="jobs submitted then or later, e.g. 2026-01-31T00:00Z")

    def handle(self, *_: Any, **options: Any) -> None:
        since = parse_datetime(options["since"]) if options["since"] else None
        if options["since"] and (since is None or since.tzinfo is None):
            raise CommandError("--since must be a date and time with its zone, e.g. 2026-01-31T00:00Z")
        if not options["file"].name.endswith((".csv", ".csv.gz")):
            raise CommandError(f"{options['file']}: name a file that ends in .csv or .csv.gz")
        rows = [_cells(job) for job in trace_jobs(past_jobs(since))]
        try:
            files.write_rows(options["file"], COLUMNS, rows)
        except OSError as failed:
            raise CommandError(f"{options['file']} cannot be written: {failed.strerror}") from failed
        self.stdout.write(f"{counted(len(rows), 'job')} written to {options['file']}")


def _cells(job: Any) -> list[Any]:
    """A row of the schema; None is an empty cell."""
    values = (getattr(job, name) for name in COLUMNS.values())
    return ["" if value is None else int(value) if isinstance(value, bool) else value for value in values]
