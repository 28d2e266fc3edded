"""Forms of people, teams and tokens."""

from __future__ import annotations

from django import forms
from django.contrib.auth.forms import PasswordChangeForm
from django.contrib.auth.validators import UnicodeUsernameValidator

from portal.accounts.models import Role
from portal.accounts.people import Profile
from portal.web.common.form_base import FilterForm, NameField, SearchField, StyledForm
from portal.web.common.number_fields import WholeNumberField
from portal.web.common.time_fields import ZoneField

MEMBER_ROLES = [(Role.MEMBER.value, "member"), (Role.LEAD.value, "lead")]


class ProfileForm(StyledForm):
    prefix_id = "profile"
    email = forms.EmailField(required=False, max_length=254)
    is_staff = forms.BooleanField(required=False, label="Administrator")

    @property
    def profile(self) -> Profile:
        return Profile(email=self.cleaned_data["email"], is_staff=self.cleaned_data["is_staff"])


class NewUserForm(ProfileForm):
    username = NameField(max_length=150, label="Name", validators=[UnicodeUsernameValidator()])
    field_order = ["username"]


class ChangeUserForm(ProfileForm):
    # The state that the administrator saw: if it is no longer so, someone else was first.
    seen_email = forms.CharField(required=False, max_length=254, widget=forms.HiddenInput)
    seen_is_staff = forms.BooleanField(required=False, widget=forms.HiddenInput)

    @property
    def seen(self) -> Profile:
        return Profile(email=self.cleaned_data["seen_email"], is_staff=self.cleaned_data["seen_is_staff"])


class LockOutForm(StyledForm):
    prefix_id = "lock-out"
    hand_over_to = NameField(
        max_length=150, required=False, label="Hand their jobs over to",
        help_text="A user's name. If empty, unfinished jobs are cancelled.",
    )  # fmt: skip


class NewPasswordForm(StyledForm):
    prefix_id = "new-password"
    revoke_tokens = forms.BooleanField(required=False, initial=True, label="Also revoke API and join tokens")


class OwnPasswordForm(PasswordChangeForm):
    revoke_tokens = forms.BooleanField(required=False, initial=True, label="Also revoke my API tokens")


class TeamForm(StyledForm):
    prefix_id = "team"
    name = NameField(max_length=100)
    seen = forms.CharField(max_length=100, required=False, widget=forms.HiddenInput)


class MemberForm(StyledForm):
    prefix_id = "member"
    username = NameField(max_length=150, label="Name")
    role = forms.ChoiceField(choices=MEMBER_ROLES)


class RoleForm(StyledForm):
    role = forms.ChoiceField(choices=MEMBER_ROLES)
    seen = forms.ChoiceField(choices=MEMBER_ROLES)


class PreferencesForm(StyledForm):
    prefix_id = "preferences"
    time_zone = ZoneField(
        max_length=64, required=False, label="Show times in",
        help_text="Type part of a name, such as Berlin; empty: the zone of the browser.",
        widget=forms.TextInput(attrs={"list": "time-zones", "placeholder": "e.g. Europe/Berlin"}),
    )  # fmt: skip
    shares_sentences = forms.BooleanField(
        required=False, label="My sentences may be exported as examples",
        help_text="Those that you began jobs with, for people who improve how sentences are read.",
    )  # fmt: skip


class NameSearch(FilterForm):
    """People or teams whose name holds a text."""

    q = SearchField(required=False, max_length=150, label="Name")

    @property
    def text(self) -> str:
        """Empty where nothing, or nothing that can be searched for, was asked."""
        return self.cleaned_data["q"] if self.is_valid() else ""


class AuditFilters(FilterForm):
    actor = SearchField(required=False, max_length=150, label="By")
    action = SearchField(required=False, max_length=60, label="Action")
    text = SearchField(required=False, max_length=200, label="Object")
    after = WholeNumberField(required=False, min_value=1, max_value=2**62, widget=forms.HiddenInput)

    @property
    def other_errors(self) -> list[str]:
        return [str(error) for error in self.errors.get("after", [])]


class LanguageModelForm(StyledForm):
    prefix_id = "language-model"
    allowed = forms.BooleanField(required=False)
