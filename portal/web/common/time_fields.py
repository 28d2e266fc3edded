"""Form fields of moments and time zones.

Moments of these forms stay in the zone that the page told.
"""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from portal.accounts import time_zones
from portal.web.common.form_base import StyledForm
from portal.web.common.number_fields import NumberField

FORMAT = "%Y-%m-%dT%H:%M"
EXACTLY = "_exactly"  # ends the name of the hidden field beside a moment


class MomentInput(forms.DateTimeInput):
    """A clock's time in minutes; what it stands for is kept apart, to the microsecond."""

    supports_microseconds = True

    def __init__(self) -> None:
        super().__init__(attrs={"type": "datetime-local"}, format=FORMAT)


class MomentField(forms.DateTimeField):
    """A date and time by the clock of a zone, which the form names beside it.

    zone: the form's; None: the reader's.
    shown: the moment that the page showed. A clock's time has no seconds, and in autumn an hour comes twice:
    while its text is not touched, it stays this moment.
    """

    zone: tzinfo | None = None
    shown: datetime | None = None

    def __init__(self, **options: Any) -> None:
        super().__init__(widget=MomentInput(), **options)

    def to_python(self, value: Any) -> datetime | None:
        if isinstance(value, str) and not value.isascii():
            raise ValidationError("Enter a date and a time in the digits 0 to 9, e.g. 2026-12-01T08:00.")
        with timezone.override(self.zone or timezone.get_current_timezone()):
            if self.shown and isinstance(value, str) and value.strip() == _by_the_clock(self.shown):
                return self.shown
            return self._read(value)

    def _read(self, value: Any) -> datetime | None:
        try:
            moment = super().to_python(value)
            return moment and moment.astimezone(UTC)
        except OverflowError as too_far:
            raise ValidationError("Choose a year between 2 and 9998.") from too_far
        except ValidationError as wrong:
            if wrong.code != "ambiguous_timezone" or not wrong.params:
                raise
            raise ValidationError(_odd(wrong.params["datetime"]), code=wrong.code) from wrong

    def prepare_value(self, value: Any) -> Any:
        aware = isinstance(value, datetime) and timezone.is_aware(value)
        return time_zones.local(value).replace(tzinfo=None) if aware else value


class HoursField(NumberField):
    """A duration in hours, as whole seconds to programs."""

    def __init__(self, *, most_s: int, **options: Any) -> None:
        messages = {
            "min_value": "Choose at least 1 second, which is 0.0003 hours.",
            "max_value": f"Choose at most {most_s / 3600:,.0f} hours.",
        }
        super().__init__(min_value=1 / 3600, max_value=most_s / 3600, error_messages=messages, **options)

    def clean(self, value: Any) -> int | None:
        hours = super().clean(value)
        return None if hours is None else max(1, round(hours * 3600))

    def prepare_value(self, value: Any) -> Any:
        return float(f"{value / 3600:.6g}") if isinstance(value, int) else value


def _by_the_clock(moment: datetime) -> str:
    return time_zones.local(moment).strftime(FORMAT)


def _moment(text: str) -> datetime | None:
    """The moment of a hidden field; None for a text that somebody edited."""
    try:
        moment = parse_datetime(text)
    except ValueError:
        return None
    return moment if moment and timezone.is_aware(moment) else None


def _odd(naive: datetime) -> str:
    """Why a clock's time names no moment, or two of them."""
    zone = timezone.get_current_timezone()
    there_and_back = naive.replace(tzinfo=zone).astimezone(UTC).astimezone(zone).replace(tzinfo=None)
    comes = "comes twice" if there_and_back == naive else "is skipped"
    return (
        f"{naive:%Y-%m-%d %H:%M} {comes} in {zone}, as the clocks change;"
        " choose a time an hour earlier or later."
    )


class ZoneField(forms.CharField):
    """The name of a time zone, however it is capitalised; empty for none."""

    def clean(self, value: Any) -> str:
        text = super().clean(value)
        zone = time_zones.named(text)
        if text and zone is None:
            raise ValidationError("There is no time zone of this name; choose one such as Europe/Berlin.")
        return zone.key if zone else ""


class TimedForm(StyledForm):
    """A form with moments: they are read in the zone in which the page showed them.

    The browser's zone may be learnt, or change, between the two. A hidden field beside each moment holds the
    one that was shown, so that it stays as it is unless it is changed.
    """

    time_zone = ZoneField(max_length=64, required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        given = self.data.get("time_zone", "") if self.is_bound else ""
        self.zone = time_zones.named(given) or timezone.get_current_timezone()
        self.fields["time_zone"].initial = str(self.zone)
        for name in self._moments:
            field: MomentField = self.fields[name]  # type: ignore[assignment]
            field.zone, field.shown = self.zone, self._shown(name)
            field.help_text = f"Time in {self.zone}. {field.help_text}".strip()
            self.fields[name + EXACTLY].initial = field.shown and field.shown.isoformat()

    def computed_fields(self) -> dict[str, forms.Field]:
        hidden = {
            name + EXACTLY: forms.CharField(required=False, widget=forms.HiddenInput, max_length=40)
            for name in self._moments
        }
        return {**super().computed_fields(), **hidden}

    @property
    def _moments(self) -> list[str]:
        return [name for name, field in self.fields.items() if isinstance(field, MomentField)]

    @property
    def exact_moments(self) -> list[forms.BoundField]:
        """The hidden fields beside the moments."""
        return [self[name + EXACTLY] for name in self._moments]

    def _shown(self, name: str) -> datetime | None:
        if name + EXACTLY in self.data:
            return _moment(str(self.data[name + EXACTLY]))
        first = self.get_initial_for_field(self.fields[name], name)
        return first.astimezone(UTC) if isinstance(first, datetime) and timezone.is_aware(first) else None

    def full_clean(self) -> None:
        with timezone.override(self.zone):
            super().full_clean()
        for field in self.exact_moments:
            getattr(self, "cleaned_data", {}).pop(field.name, None)
        for problem in self.errors.get("time_zone", ()):  # of a field that nobody sees
            self.add_error(None, problem)
