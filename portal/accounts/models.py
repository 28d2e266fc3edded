"""People, teams, API tokens and the record of who did what."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Never

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.db import models
from django.utils.functional import cached_property


class Scope(models.TextChoices):
    """Scopes of tokens; each includes those before it."""

    READ = "read"
    SUBMIT = "submit"
    WRITE = "write"
    ADMIN = "admin"

    def includes(self, other: Scope) -> bool:
        order = list(Scope)
        return order.index(self) >= order.index(other)


class Role(models.TextChoices):
    """A person's part in a team."""

    MEMBER = "member"
    LEAD = "lead"


class User(AbstractUser):
    """A person or a service account; administrators are `is_staff`.

    `is_service`: an account for programs, without password and sessions. `service_team`: whose leads run it;
    null: administrators alone.

    `seen_at`: when they last looked at the start page; `seen_position`: how far the events had come then.

    `lockouts`: how often they were locked out; a session remembers it, so that none outlasts a lock-out.
    `successor`: who gets their jobs while they are locked out; null: the jobs are cancelled. `time_zone`: in
    which they are told times; empty: in their browser's. `shares_sentences`: may sentences of their jobs be
    exported as examples for the reader?
    """

    seen_at = models.DateTimeField(null=True, blank=True, editable=False)
    seen_position = models.BigIntegerField(default=0, db_default=0, editable=False)
    lockouts = models.PositiveIntegerField(default=0, db_default=0, editable=False)
    successor = models.ForeignKey(
        "self", models.SET_NULL, null=True, blank=True, editable=False, related_name="+"
    )
    time_zone = models.CharField(max_length=64, blank=True, default="", db_default="")
    shares_sentences = models.BooleanField(default=False, db_default=False)
    is_service = models.BooleanField(default=False, db_default=False, editable=False)
    service_team = models.ForeignKey(
        "Team", models.SET_NULL, null=True, blank=True, editable=False, related_name="service_accounts"
    )

    # What the token of this request leaves of the person's rights; no columns.
    bound_team_id: int | None = None  # nothing but this team's
    changes_own_alone = False

    @property
    def is_admin(self) -> bool:
        return self.is_active and self.is_staff and self.bound_team_id is None

    def get_session_auth_hash(self) -> str:
        """Return the value that binds sessions.

        Django's own depends on the password alone, which outlasts a lock-out.
        """
        return self._since_last_lockout(super().get_session_auth_hash())

    def get_session_auth_fallback_hash(self) -> Iterator[str]:
        """The same under former secret keys."""
        yield from map(self._since_last_lockout, super().get_session_auth_fallback_hash())

    def _since_last_lockout(self, of_password: str) -> str:
        if not self.lockouts:
            return of_password
        return hashlib.sha256(f"{of_password} {self.lockouts}".encode()).hexdigest()

    @cached_property
    def team_ids(self) -> tuple[int, ...]:
        """Ids of the person's teams, read once per request.

        With the numbers themselves the database uses its indexes on teams. A token that is bound to one
        leaves that alone.
        """
        memberships = self.memberships.all()
        if self.bound_team_id is not None:
            memberships = memberships.filter(team=self.bound_team_id)
        return tuple(memberships.values_list("team_id", flat=True))


class Team(models.Model):
    """People who see each other's jobs and are charged together."""

    name = models.CharField(max_length=100, unique=True)
    members: models.ManyToManyField[User, Membership] = models.ManyToManyField(
        User, through="Membership", related_name="teams"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    language_model = models.BooleanField(
        default=False, db_default=False, help_text="members' scripts and sentences may be sent to it"
    )

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    team = models.ForeignKey(Team, models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role.choices, default=Role.MEMBER)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "user"], name="one_membership_per_person")]

    def __str__(self) -> str:
        return f"{self.user} in {self.team}"


class ApiToken(models.Model):
    """A program's right to act for its owner.

    Only the digest is stored; the text is shown once. `team`: the one it is bound to. `networks`: from where
    it may be used, as `ipaddress` writes them; none: from anywhere. `follows`: the token that it took the
    place of. `last_used_for`: method and path of a request at `last_used_at`.
    """

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=100)
    scope = models.CharField(max_length=10, choices=Scope.choices, default=Scope.WRITE)
    team = models.ForeignKey(Team, models.CASCADE, null=True, blank=True, related_name="tokens")
    networks = models.JSONField(default=list, db_default=[], blank=True)
    follows = models.OneToOneField("self", models.SET_NULL, null=True, blank=True, related_name="followed_by")
    digest = models.CharField(max_length=64, unique=True)
    hint = models.CharField(max_length=12)  # first characters, so that people tell their tokens apart
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    last_used_for = models.CharField(max_length=100, blank=True, default="", db_default="")
    last_used_from = models.CharField(max_length=64, blank=True, default="", db_default="")

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.name} ({self.hint}…)"

    def is_valid_at(self, now: datetime) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


class DeviceGrant(models.Model):
    """A program's question for a token, which a person answers (RFC 8628).

    `digest`: of the code that the program asks with; only the program has it. `user_code`: what the person
    types. `program`, `name`: as the program calls itself, and the token that it asks for. `owner`: who
    confirmed or denied; `scope` and what follows are then as they chose. `collected_at`: the token was handed
    out.
    """

    digest = models.CharField(max_length=64, unique=True)
    user_code = models.CharField(max_length=8, unique=True)
    program = models.CharField(max_length=40)
    name = models.CharField(max_length=100)
    scope = models.CharField(max_length=10, choices=Scope.choices)
    address = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(db_index=True)
    interval_s = models.PositiveSmallIntegerField()
    polled_at = models.DateTimeField(null=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, null=True, related_name="+")
    confirmed_at = models.DateTimeField(null=True)
    denied_at = models.DateTimeField(null=True)
    team = models.ForeignKey(Team, models.CASCADE, null=True, related_name="+")
    token_expires_at = models.DateTimeField(null=True)
    collected_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.program} from {self.address}"

    def is_open_at(self, now: datetime) -> bool:
        """May a person still answer?"""
        return self.confirmed_at is None and self.denied_at is None and now < self.expires_at


class AuditEntry(models.Model):
    """The audit record: actor, act and object. Rows are added and never changed."""

    at = models.DateTimeField(db_index=True)
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True)
    actor_name = models.CharField(max_length=150, blank=True)  # stays when the person is deleted
    node = models.CharField(max_length=100, blank=True)
    action = models.CharField(max_length=60, db_index=True)
    target = models.CharField(max_length=200, blank=True)
    data = models.JSONField(default=dict)
    address = models.CharField(max_length=64, blank=True)

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "audit entries"

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S} {self.actor_name or self.node} {self.action} {self.target}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise TypeError("Audit entries are never changed; add another one.")
        super().save(*args, **kwargs)

    def delete(self, *_args: Any, **_kwargs: Any) -> Never:
        raise TypeError("Audit entries are never deleted.")
