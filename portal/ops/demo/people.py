"""People of the demo portal, and their training data."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass
from datetime import datetime

from portal.accounts.models import Membership, Role, Team, User
from scheduler.models import DatasetFile

ADMIN = "admin"
TEAMS = {"Language": ("user", "ada", "ben"), "Search": ("chloe", "dmitri")}
ROW_BYTES = ((400, 0.3), (1200, 0.4), (2800, 0.2), (6000, 0.1))  # (bytes, share of the rows)
FILES = {
    "support-dialogues.jsonl": 270_000,
    "contract-clauses.jsonl": 120_000,
    "product-questions.jsonl": 480_000,
    "code-reviews.jsonl": 195_000,
    "medical-summaries.jsonl": 75_000,
    "search-queries.jsonl": 720_000,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    admin: User
    members: tuple[User, ...]
    teams: dict[str, Team]  # by name of the person
    files: dict[str, tuple[DatasetFile, ...]]  # by name of the person


def settle_in(rng: random.Random, *, password: str, now: datetime) -> People:
    """An administrator, five members of two teams, and a few files of each."""
    admin = User.objects.create_superuser(ADMIN)
    members, teams = [], {}
    for team_name, names in TEAMS.items():
        team = Team.objects.create(name=team_name)
        for place, name in enumerate(names):
            person = User.objects.create_user(name)
            role = Role.MEMBER if place else Role.LEAD
            Membership.objects.create(team=team, user=person, role=role)
            members.append(person)
            teams[name] = team
    for person in (admin, *members):
        person.set_password(password)
        person.save(update_fields=["password"])
    files = {person.username: _files(rng, person, teams[person.username], now) for person in members}
    return People(admin=admin, members=tuple(members), teams=teams, files=files)


def _files(rng: random.Random, owner: User, team: Team, now: datetime) -> tuple[DatasetFile, ...]:
    """Rows only: the demo trains nothing, so their content is never asked for."""
    chosen = rng.sample(sorted(FILES), 3)
    return tuple(_file(owner, team, name, FILES[name], now) for name in chosen)


def _file(owner: User, team: Team, name: str, rows: int, now: datetime) -> DatasetFile:
    lengths = [[size, round(rows * share)] for size, share in ROW_BYTES]
    return DatasetFile.objects.create(
        owner=owner,
        team=team,
        filename=name,
        sha256=hashlib.sha256(f"demo {owner.pk} {name}".encode()).hexdigest(),
        bytes=sum(size * count for size, count in lengths),
        rows=rows,
        format="chat",
        lengths=lengths,
        created_at=now,
    )
