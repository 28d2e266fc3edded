"""Periods that a query names."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from rest_framework.exceptions import ValidationError

from portal.api.common.fields import StrictSerializer, ZonedDateTime
from scheduler.selectors.analysis.period import Period, before


class PeriodQuery(StrictSerializer):
    since = ZonedDateTime(required=False, help_text="30 days before the end unless given.")
    until = ZonedDateTime(required=False, help_text="The end of the period; now unless given.")


def read_period(query: Mapping[str, Any], *, usual: timedelta, now: datetime) -> Period:
    """The period of a query, which ends now at the latest.

    usual: how long it is unless the query says so. Raises ValidationError.
    """
    until = min(query.get("until") or now, now)
    since = query.get("since") or before(until, usual)
    if since >= until:
        raise ValidationError({"since": ["must lie before the end of the period"]})
    return Period(since, until)
