"""Entries of the audit record as other pages would say them.

They have labels, units and names for what is stored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from django.urls import reverse

from knowledge.core.domain.wording import in_sentence, label
from portal.web.templatetags.portal_format import closeness, duration, in_own_time, money, number, size
from scheduler.core.job_terms import JOB_TERMS, Kind
from scheduler.states import PriorityClass

LABELS = {
    "is_staff": "Administrator", "budget_s": "Time budget", "lifetime_s": "Lifetime", "sha256": "SHA-256",
    "max_class": "Highest class", "learn": "Learnt from", "flag_reason": "Why not learnt from",
    **{name: term.label for name, term in JOB_TERMS.items()},
}  # fmt: skip
MONEY = {"budget", "on_demand_price", "price", "price_per_gpu_hour"}
NAMES = {name: term.choices for name, term in JOB_TERMS.items() if term.kind is Kind.WORD}
PRICES = {"node price changed": {"from", "to"}}  # by action, what else is an amount of money
_IDENTIFIER = re.compile(r"[a-z]+(_[a-z]+)+")
PAGES = {"ftjob-": "job", "node-": "node"}
NUMBERED_PAGES = {"team": "team", "market": "market"}


def details(action: str, data: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The contents of an entry, as labels and values."""
    prices = PRICES.get(action, set())
    return [
        (_label(name), _price(value) if name in prices else shown(name, value))
        for name, value in sorted(data.items())
    ]


def _price(value: float) -> str:
    return money(value) if value else "none"


def shown(name: str, value: Any) -> str:
    """One value in the unit and the words of its name."""
    if value is None or value == "" or value == []:
        return number(None)
    if isinstance(value, Mapping):
        return ", ".join(f"{in_sentence(key)} {shown(key, one)}" for key, one in value.items())
    if isinstance(value, list):
        return _listed(name, value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return _number(name, value)
    known = NAMES.get(name, {}).get(str(value))
    text = in_sentence(value) if _IDENTIFIER.fullmatch(str(value)) else str(value)
    return known or in_own_time(text)


def _listed(name: str, values: list[Any]) -> str:
    """A change of a job is stored as its two values."""
    if len(values) == 2 and not any(isinstance(value, Mapping) for value in values) and name != "nodes":
        return " → ".join(shown(name, value) for value in values)
    return "; ".join(shown(name, value) for value in values)


def _number(name: str, value: float) -> str:
    if name in ("priority", "max_class") and value in list(PriorityClass):
        return PriorityClass(int(value)).word
    if name == "topology_level":
        return closeness(int(value))
    if name in MONEY:
        return money(value)
    if name == "bytes":
        return size(value)
    return duration(value) if name.endswith("_s") else number(value)


def _label(name: str) -> str:
    bare = name.removeprefix("params.")
    return LABELS.get(bare) or label(bare)


def page_of(target: str) -> str:
    """The address of the page of what an entry is about; empty where there is none."""
    kind, _, number_of = target.partition(" ")
    if kind in NUMBERED_PAGES and number_of.isdecimal():
        return reverse(NUMBERED_PAGES[kind], args=[int(number_of)])
    found = next((page for prefix, page in PAGES.items() if target.startswith(prefix)), "")
    return reverse(found, args=[target]) if found and " " not in target and "/" not in target else ""
