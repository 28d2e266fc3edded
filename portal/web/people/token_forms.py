"""Forms of API tokens: made by a person, or confirmed for a program that asks."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError

from portal.accounts.errors import InvalidValue
from portal.accounts.models import Scope, Team, User
from portal.accounts.selectors import own_teams
from portal.accounts.token_bounds import Bounds, clean_networks
from portal.web.common.form_base import NameField, StyledForm

SCOPES = {
    Scope.READ: "read: look, ask for advice",
    Scope.SUBMIT: "submit: files and jobs of its own",
    Scope.WRITE: "write: all but administration",
    Scope.ADMIN: "admin: administration as well",
}
LIFETIMES = {30: "30 days", 90: "90 days", 365: "one year"}


def lifetimes() -> list[tuple[str, str]]:
    """How long a token may live, as an administrator allows."""
    most = settings.TOKEN_MAX_DAYS
    days = {**LIFETIMES, settings.TOKEN_DAYS: f"{settings.TOKEN_DAYS} days", **LIFETIMES}
    if most:
        days = {**{each: text for each, text in days.items() if each < most}, most: f"{most} days"}
    choices = [(str(each), days[each]) for each in sorted(days)]
    return choices if most else [*choices, ("", "no expiry")]


class TeamField(forms.ModelChoiceField):  # type: ignore[type-arg]  # generic in the stubs only
    def label_from_instance(self, obj: Team) -> str:
        return f"the team {obj} alone"


class BoundsForm(StyledForm):
    """What a token is called, and what it is bound to."""

    order = ("name", "scope", "team", "days", "networks")
    name = NameField(max_length=100, help_text="What the token is for.")

    def __init__(self, *args: Any, owner: User, maker: User | None = None, **kwargs: Any) -> None:
        self.owner, self.maker = owner, maker or owner
        super().__init__(*args, **kwargs)
        self.order_fields(self.order)

    def table_fields(self) -> dict[str, forms.Field]:
        """Fields with what the owner may choose."""
        usual = min(settings.TOKEN_DAYS, settings.TOKEN_MAX_DAYS or settings.TOKEN_DAYS)
        allowed = [(each.value, text) for each, text in SCOPES.items() if self._may_give(each)]
        fields: dict[str, forms.Field] = {
            "scope": forms.ChoiceField(choices=allowed, initial=Scope.SUBMIT),
            "days": forms.TypedChoiceField(
                choices=lifetimes(), coerce=int, empty_value=None, required=False, initial=str(usual),
                label="Valid for",
            ),
        }  # fmt: skip
        teams = own_teams(self.owner)
        if teams.exists():
            fields["team"] = TeamField(
                teams, required=False, empty_label="everything its owner sees", label="Reaches"
            )
        return fields

    def _may_give(self, scope: Scope) -> bool:
        return scope != Scope.ADMIN or (self.owner.is_admin and self.maker.is_admin)

    def expires_at(self, now: datetime) -> datetime | None:
        days = self.cleaned_data["days"]
        return now + timedelta(days=days) if days else None

    def bounds(self, now: datetime) -> Bounds:
        """What the token is bound to."""
        return Bounds(
            scope=Scope(self.cleaned_data["scope"]),
            team=self.cleaned_data.get("team"),
            networks=self.cleaned_data.get("networks", ()),
            expires_at=self.expires_at(now),
        )


class TokenForm(BoundsForm):
    """A token that a person makes by hand."""

    prefix_id = "token"
    networks = forms.CharField(
        required=False, max_length=1000, label="Only from",
        help_text="Addresses or ranges, such as 10.1.0.0/16; empty: from anywhere.",
    )  # fmt: skip

    def clean_networks(self) -> tuple[str, ...]:
        try:
            return clean_networks(re.findall(r"[^\s,;]+", self.cleaned_data["networks"]))
        except InvalidValue as wrong:
            raise ValidationError(f"{wrong}.") from wrong


class ConfirmForm(BoundsForm):
    """What a program that asks for a token gets; from where it runs, nobody knows."""

    prefix_id = "program"
    code = forms.CharField(max_length=40, widget=forms.HiddenInput)


class CodeForm(StyledForm):
    """The code that a program shows."""

    prefix_id = "code"
    code = forms.CharField(
        max_length=40, label="Code", help_text="As the program shows it, e.g. WDJB-MJHT.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "characters"}),
    )  # fmt: skip
