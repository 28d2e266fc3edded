"""Print what a sentence says of a job."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from portal.accounts import time_zones
from portal.accounts.models import User
from portal.api.reading.intents import intent_json
from portal.clock import database_now
from portal.intents.core.types import MAX_CHARACTERS
from portal.intents.services import understand


class Command(BaseCommand):
    help = (
        "Print what a sentence of a person says of a job, as POST /api/intents/ answers; nothing is stored."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("text", metavar="TEXT")
        parser.add_argument("--user", required=True, help="Their files, teams and newest job are meant.")
        parser.add_argument("--timezone", default="", help="Of clock times; else the person's own.")

    def handle(self, **options: Any) -> None:
        user = User.objects.filter(username=options["user"]).first()
        if user is None:
            raise CommandError(f"--user: there is no {options['user']}; give the name of a person")
        zone = time_zones.named(options["timezone"] or user.time_zone)
        if zone is None and options["timezone"]:
            raise CommandError("--timezone: give a time zone such as Europe/Berlin")
        if len(options["text"]) > MAX_CHARACTERS:
            raise CommandError(f"TEXT: give at most {MAX_CHARACTERS:,} characters")
        understood = understand(
            user=user,
            text=options["text"],
            now=database_now(),
            zone=zone or timezone.get_default_timezone(),
        )
        self.stdout.write(json.dumps(intent_json(understood), indent=1, ensure_ascii=False))
