"""Make a join token: the short-lived permission with which a node enrols."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.clock import database_now
from portal.node_package import join_command
from portal.wheels import BuildFailed
from scheduler.services.nodes.register import create_join_token
from trainer.written import decimal, whole

MOST_HOURS, MOST_USES = 8_760, 1_000  # a year; as over REST


class Command(BaseCommand):
    help = "Print a join token for `foretune-node --portal URL --join TOKEN`; it is shown once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--hours", type=decimal, default=1.0, help="how long it is valid (1)")
        parser.add_argument("--uses", type=whole, default=1, help="how many nodes may use it (1)")
        parser.add_argument("--portal", metavar="URL", help="print the whole command for a new node instead")
        parser.add_argument("--as", dest="username", help="administrator in whose name (the first one)")

    def handle(self, *_: Any, **options: Any) -> None:
        if not 0 < options["hours"] <= MOST_HOURS or not 1 <= options["uses"] <= MOST_USES:
            raise CommandError(
                f"--hours must be above 0 and at most {MOST_HOURS:,}, and --uses from 1 to {MOST_USES:,}"
            )
        admins = get_user_model().objects.filter(is_staff=True, is_active=True).order_by("pk")
        if options["username"]:
            admins = admins.filter(username=options["username"])
        admin = admins.first()
        if admin is None:
            raise CommandError("No such administrator: create one with `manage.py createsuperuser`")
        lifetime_s = options["hours"] * 3600
        token = create_join_token(
            actor=admin, now=database_now(), lifetime_s=lifetime_s, uses=options["uses"]
        )
        if not options["portal"]:
            self.stdout.write(token)
            return
        try:
            self.stdout.write(join_command(portal=options["portal"].rstrip("/"), token=token))
        except BuildFailed as failed:
            raise CommandError(str(failed)) from failed
