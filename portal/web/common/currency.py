"""What forms say about amounts of money."""

from __future__ import annotations

from django.conf import settings
from django.utils.functional import lazy


def _sentence() -> str:
    return f"In {settings.CURRENCY}." if settings.CURRENCY else "In the currency of node prices."


in_currency = lazy(_sentence, str)()  # read when it is shown
