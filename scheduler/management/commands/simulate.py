"""Play a trace of jobs on a simulated cluster under any policy.

The portal's own jobs are not touched.
"""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from scheduler.simulator import cli
from scheduler.simulator.errors import SimulatorError


class Command(BaseCommand):
    help = "Simulate policies on a public trace, on our own schema, or on the portal's exported past."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        cli.add_arguments(parser)

    def handle(self, *_: Any, **options: Any) -> None:
        try:
            cli.run(options)
        except SimulatorError as error:
            raise CommandError(str(error)) from error
