"""Fill an empty portal with simulated data, which every page then names as such."""

from __future__ import annotations

import secrets
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.clock import database_now
from portal.ops.demo.build import PortalNotEmpty, build
from trainer.written import whole

MOST_JOBS = 10_000


class Command(BaseCommand):
    help = "Fill an EMPTY portal with two weeks of simulated people, nodes, jobs and predictors."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--seed", type=whole, default=1)
        parser.add_argument("--jobs", type=whole, default=200)
        parser.add_argument("--password", help="of all its people; made up and printed if left out")
        parser.add_argument("--no-train", action="store_true", help="train no predictors: physics alone")

    def handle(self, *_: Any, **options: Any) -> None:
        if not 1 <= options["jobs"] <= MOST_JOBS:
            raise CommandError(f"--jobs must be from 1 to {MOST_JOBS:,}")
        password = options["password"] or secrets.token_urlsafe(12)
        train = not options["no_train"]
        if train:
            call_command("load_shipped_history", stdout=self.stderr)
        try:
            build(
                seed=options["seed"], jobs=options["jobs"], password=password, train=train, now=database_now()
            )
        except PortalNotEmpty as refused:
            raise CommandError(str(refused)) from refused
        self.stdout.write("Simulated data are in place; every page says so.")
        if not options["password"]:
            self.stdout.write(f"Sign in as admin or user, password {password}")
