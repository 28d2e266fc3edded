"""Forms of people, teams and tokens."""

from __future__ import annotations

from datetime import datetime, timedelta

from django import forms
from django.contrib.auth.forms import PasswordChangeForm
from django.contrib.auth.validators import UnicodeUsernameValidator

from portal.accounts.models import Role, Scope
from portal.accounts.people import Profile
from portal.web.common.form_base import FilterForm, StyledForm

MEMBER_ROLES = [(Role.MEMBER.value, "member"), (Role.LEAD.value, "lead")]
LIFETIMES = [("30", "30 days"), ("90", "90 days"), ("365", "one year"), ("", "without end")]
SCOPES = {
    Scope.READ: "read: look only",
    Scope.WRITE: "write: submit and act",
    Scope.ADMIN: "admin: nodes too",
}


class ProfileForm(StyledForm):
    prefix_id = "profile"
    email = forms.EmailField(required=False, max_length=254)
    is_staff = forms.BooleanField(required=False, label="Administrator")

    @property
    def profile(self) -> Profile:
        return Profile(email=self.cleaned_data["email"], is_staff=self.cleaned_data["is_staff"])


class NewUserForm(ProfileForm):
    username = forms.CharField(max_length=150, label="Name", validators=[UnicodeUsernameValidator()])
    field_order = ["username"]


class ChangeUserForm(ProfileForm):
    # What the administrator saw: if it is no longer so, someone else was first.
    seen_email = forms.CharField(required=False, max_length=254, widget=forms.HiddenInput)
    seen_is_staff = forms.BooleanField(required=False, widget=forms.HiddenInput)

    @property
    def seen(self) -> Profile:
        return Profile(email=self.cleaned_data["seen_email"], is_staff=self.cleaned_data["seen_is_staff"])


class LockOutForm(StyledForm):
    prefix_id = "lock-out"
    hand_over_to = forms.CharField(
        max_length=150, required=False, label="Hand their jobs over to",
        help_text="A user's name. Left empty, jobs that have not ended are cancelled.",
    )  # fmt: skip


class NewPasswordForm(StyledForm):
    prefix_id = "new-password"
    revoke_tokens = forms.BooleanField(required=False, initial=True, label="End API and join tokens, too")


class OwnPasswordForm(PasswordChangeForm):
    revoke_tokens = forms.BooleanField(required=False, initial=True, label="End my API tokens, too")


class TeamForm(StyledForm):
    prefix_id = "team"
    name = forms.CharField(max_length=100)
    seen = forms.CharField(max_length=100, required=False, widget=forms.HiddenInput)


class MemberForm(StyledForm):
    prefix_id = "member"
    username = forms.CharField(max_length=150, label="Name")
    role = forms.ChoiceField(choices=MEMBER_ROLES)


class RoleForm(StyledForm):
    role = forms.ChoiceField(choices=MEMBER_ROLES)
    seen = forms.ChoiceField(choices=MEMBER_ROLES)


class TokenForm(StyledForm):
    prefix_id = "token"
    name = forms.CharField(max_length=100, help_text="What it is for; only you see it.")
    scope = forms.ChoiceField(choices=[(s.value, text) for s, text in SCOPES.items()], initial=Scope.WRITE)
    days = forms.TypedChoiceField(
        choices=LIFETIMES, coerce=int, empty_value=None, required=False, initial="90", label="Lives for"
    )

    def expires_at(self, now: datetime) -> datetime | None:
        days = self.cleaned_data["days"]
        return now + timedelta(days=days) if days else None


class NameSearch(FilterForm):
    """People or teams whose name holds a text."""

    q = forms.CharField(required=False, max_length=150, label="Name")

    @property
    def text(self) -> str:
        """Empty where nothing, or nothing that can be searched for, was asked."""
        return self.cleaned_data["q"] if self.is_valid() else ""


class AuditFilters(FilterForm):
    actor = forms.CharField(required=False, max_length=150, label="Who")
    action = forms.CharField(required=False, max_length=60, label="Did what")
    text = forms.CharField(required=False, max_length=200, label="To what")
    after = forms.IntegerField(required=False, min_value=1, max_value=2**62, widget=forms.HiddenInput)

    @property
    def other_errors(self) -> list[str]:
        return [str(error) for error in self.errors.get("after", [])]
