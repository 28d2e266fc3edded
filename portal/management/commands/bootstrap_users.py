"""Create the first two people of a new portal: an administrator and a user."""

from __future__ import annotations

import json
import secrets
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.db import transaction

from portal.accounts.models import User

PASSWORD_BYTES = 12


class Command(BaseCommand):
    help = "Create `admin` and `user` with generated passwords, shown once; does nothing if people exist."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print a list of {username, password}")

    def handle(self, *_: Any, **options: Any) -> None:
        created = create_first_people()
        if options["json"]:
            self.stdout.write(json.dumps(created))
            return
        for person in created:
            self.stdout.write(f"{person['username']}: {person['password']}")
        if not created:
            self.stdout.write("There are people already; nothing was created.")


@transaction.atomic
def create_first_people() -> list[dict[str, str]]:
    """The people created, with their passwords; none if the portal is not new."""
    if User.objects.exists():
        return []
    people = [
        {"username": name, "password": secrets.token_urlsafe(PASSWORD_BYTES)} for name in ("admin", "user")
    ]
    admin, user = people
    User.objects.create_superuser(admin["username"], password=admin["password"])
    User.objects.create_user(user["username"], password=user["password"])
    return people
