"""Amounts of money in forms, and what is said about them."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.utils.functional import lazy

from portal.web.common.number_fields import NumberField
from scheduler.core.job_terms import JOB_TERMS, MAX_BUDGET


def _sentence() -> str:
    return f"In {settings.CURRENCY}." if settings.CURRENCY else "In the currency of node prices."


in_currency = lazy(_sentence, str)()  # read when it is shown


class BudgetField(NumberField):
    """The most that a job may cost; every wrong amount is told alike."""

    def __init__(self, **options: Any) -> None:
        messages = dict.fromkeys(("min_value", "max_value"), JOB_TERMS["budget"].range)
        super().__init__(
            min_value=0, max_value=MAX_BUDGET, error_messages=messages, help_text=in_currency, **options
        )
