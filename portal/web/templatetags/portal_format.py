"""The format of figures on pages.

They always have a unit, and never more digits than they deserve.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from string import ascii_uppercase
from typing import Any

from django import template
from django.conf import settings
from django.urls import reverse
from django.utils import timezone
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe

from knowledge.core.domain import wording
from knowledge.core.domain.wording import label
from portal.accounts.models import ApiToken, User
from portal.accounts.time_zones import local, offset
from scheduler.core.placement.levels import TopologyLevel
from scheduler.models import Node
from scheduler.models.ids import ARRAY_ID, JOB_ID
from scheduler.selectors.silence import is_silent, shown_node_state
from scheduler.states import WaitState
from trainer.recipes import DEFAULT_RECIPE, RECIPES

register = template.Library()
IDS_APART = re.compile(f"({JOB_ID.pattern}|{ARRAY_ID.pattern})")
STORED_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d)?[+-]\d\d:\d\d", re.ASCII)
UNKNOWN = "–"
FAILURES = {"user": "data or code", "resource": "resources", "system": "nodes and infrastructure"}

WAITS: Mapping[str, str] = {
    WaitState.NO_OPTION: "no node can run it",
    WaitState.NO_NODE: "no ready node can run it",
    WaitState.DECLINED: "nodes declined it",
    WaitState.CHECKPOINT_NODE: "the node with its checkpoint is not ready",
    WaitState.HELD: "an administrator holds it",
    WaitState.BEGIN_TIME: "its begin time has not come",
    WaitState.DEPENDENCY: "other jobs must end first",
    WaitState.ARRAY_LIMIT: "enough jobs of its array run",
    WaitState.QUOTA_TEAM: "its team holds what it may",
    WaitState.QUOTA_USER: "its owner holds what they may",
    WaitState.HOURS_USER: "its owner's GPU-hours do not last",
    WaitState.WINDOW: "a window closes too early",
    WaitState.MARKET: "nodes of a market are awaited",
    WaitState.BUSY: "other jobs hold the GPUs",
    WaitState.BEHIND: "GPUs are kept for jobs that go first",
    WaitState.ROUND: "the next round has not begun",
    WaitState.PENDING: "other jobs are leaving its GPUs",
    WaitState.OPTIONS: "its options are being computed",
}


@register.filter
def person(user: User) -> str:
    """Whose something is: the name, with a mark if that is a service account."""
    if not user.is_service:
        return user.get_username()
    mark = mark_safe('<span class="badge text-bg-secondary fw-normal">service account</span>')
    return format_html("{} {}", user.get_username(), mark)


@register.filter
def has_ended(token: ApiToken, now: datetime) -> bool:
    """Does the token work no more?"""
    return not token.is_valid_at(now)


@register.filter
def pairs(texts: Mapping[str, str]) -> list[tuple[str, str]]:
    """The keys with their texts.

    A template takes `texts.items` for the text of the key `items`.
    """
    return list(texts.items())


@register.filter
def duration(seconds: float | None) -> str:
    """E.g. `20 ms`, `0.4 s`, `12 s`, `3 min 20 s`, `5 h 10 min`, `2 d 3 h`."""
    if seconds is None:
        return UNKNOWN
    if 0 < seconds < 0.1:
        return f"{seconds * 1000:.3g} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for size, unit, smaller, smaller_unit in (
        (86_400, "d", 3600, "h"),
        (3600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if whole >= size:
            rest = whole % size // smaller
            return f"{whole // size} {unit}" + (f" {rest} {smaller_unit}" if rest else "")
    return f"{whole} s"


@register.filter
def size(count: float | None) -> str:
    """Bytes in binary units, e.g. `1.5 GiB`."""
    if count is None:
        return UNKNOWN
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


@register.filter
def number(value: Any) -> str:
    """Thousands separated; three significant digits below a hundred."""
    if value is None or value == "":
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, int | float):
        return str(value)
    return f"{value:,.0f}" if isinstance(value, int) or abs(value) >= 100 else f"{value:.3g}"


@register.filter
def loss(value: float | None) -> str:
    """Three decimals, as in the captions of charts."""
    return UNKNOWN if value is None else f"{value:.3f}"


@register.filter
def money(amount: float | None) -> str:
    """An amount in the portal's currency."""
    return UNKNOWN if amount is None else wording.money(amount, settings.CURRENCY)


@register.filter
def count(value: float) -> str:
    """A large count in short, e.g. `8.0 B` for 8 billion."""
    for scale, unit in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if value >= scale:
            return f"{value / scale:.1f} {unit}"
    return f"{value:.0f}"


@register.filter
def percent(share: float | None) -> str:
    return UNKNOWN if share is None else f"{share:.0%}"


@register.filter
def words(name: str) -> str:
    """A parameter's name as a label: `lora_r` becomes `LoRA rank`."""
    return label(name)


@register.inclusion_tag("jobs/constants.html")
def training_constants(recipe: str = DEFAULT_RECIPE.name) -> dict[str, Any]:
    """The settings that nobody chooses, as they are in every training of a recipe."""
    return {"constants": RECIPES[recipe].constants}


@register.filter
def failure(kind: str) -> str:
    """Where the cause of a job's failure lies, by its class."""
    return FAILURES.get(kind, "unknown cause")


@register.filter
def waits_for(code: str) -> str:
    """Say in words why a queued job waits, by the code of its wait."""
    return WAITS.get(code, label(code))


@register.filter
def figure_name(name: str) -> str:
    """The label of a compared figure."""
    return FIGURES[name][0]


@register.filter
def figure(value: float | None, name: str) -> str:
    """A compared figure in its own unit."""
    return FIGURES[name][1](value)


@register.filter
def ago(moment: datetime | None) -> str | SafeString:
    """Say how long ago it was.

    Pressed, by mouse, touch or keyboard, it tells the exact time, too.
    """
    if moment is None:
        return UNKNOWN
    passed = (timezone.now() - moment).total_seconds()
    lasted = _whole(abs(passed))
    text = "just now" if abs(passed) < 5 else f"{lasted} ago" if passed > 0 else f"in {lasted}"
    return _pressable(moment, mark_safe(" data-ago"), text, exact(moment))


@register.filter
def lasting(moment: datetime) -> SafeString:
    """Format how long something has lasted by now, e.g. `for 3 min 20 s`.

    It is for parts that are fetched again while it lasts.
    """
    text = f"for {_whole(max(0.0, (timezone.now() - moment).total_seconds()))}"
    return _pressable(moment, "", text, f"since {exact(moment)}")


@register.filter
def phrase(sentence: str) -> str:
    """A sentence as it stands within another one, without its full stop."""
    return sentence.rstrip(".")


@register.filter
def node_state(node: Node) -> str:
    """The state of a node as people see it.

    It is `silent` where work could be there, and nothing is heard.
    """
    return shown_node_state(node, timezone.now())


@register.filter
def unheard(node: Node) -> bool:
    """Whether nothing was heard of the node lately.

    No live figure of it is shown then.
    """
    return is_silent(node, timezone.now())


@register.filter
def closeness(level: int) -> str:
    """The part that GPUs at a topology level share, e.g. `NUMA node`."""
    return TopologyLevel(level).phrase


@register.filter
def letter(number: int) -> str:
    """A small number as a letter; those beyond the alphabet stay numbers."""
    return ascii_uppercase[number] if number < len(ascii_uppercase) else str(number)


@register.filter
def at(moment: datetime) -> SafeString:
    """Date and time to the minute, by the reader's clock."""
    return format_html('<time datetime="{}">{}</time>', local(moment).isoformat(), exact(moment, "minutes"))


@register.filter
def in_own_time(text: str) -> str:
    """Return a stored sentence with its moments by the reader's clock.

    They are stored in ISO 8601 with an offset.
    """
    return STORED_MOMENT.sub(_read, text)


@register.filter
def with_links(text: str, jobs: Mapping[str, Any]) -> SafeString:
    """A text in which the ids of these jobs are their names, as links.

    Ids of arrays lead to their jobs.
    """
    return SafeString("".join(_linked(part, jobs) for part in IDS_APART.split(text)))


def _linked(part: str, jobs: Mapping[str, Any]) -> str:
    if ARRAY_ID.fullmatch(part):
        return format_html('<a href="{}?q={}">{}</a>', reverse("jobs"), part, part)
    job = jobs.get(part)
    return escape(part) if job is None else format_html('<a href="{}">{}</a>', job.get_absolute_url(), job)


def _read(found: re.Match[str]) -> str:
    try:
        return exact(datetime.fromisoformat(found[0]))
    except ValueError:  # no moment, though it looks like one
        return found[0]


def exact(moment: datetime, to: str = "seconds") -> str:
    """E.g. `2026-11-23 07:18:15 UTC+05:30`."""
    here = local(moment)
    return f"{here.replace(tzinfo=None).isoformat(' ', to)} {offset(here)}"


def _pressable(moment: datetime, ticking: str, text: str, precisely: str) -> SafeString:
    return format_html(
        '<button type="button" class="moment" aria-expanded="false" title="{}">'
        '<time{} datetime="{}">{}</time><span hidden>, {}</span></button>',
        precisely, ticking, local(moment).isoformat(), text, precisely,
    )  # fmt: skip


@register.filter
def clock(moment: datetime) -> SafeString:
    """Return the time of day by the reader's clock, as in `14:32`.

    In the week to come it is `Tue 14:32`, else the date.
    """
    here = local(moment)
    days = (here.date() - local(timezone.now()).date()).days
    text = f"{here:%H:%M}" if not days else f"{here:%a %H:%M}" if 0 < days < 7 else f"{here:%Y-%m-%d %H:%M}"
    return format_html('<time datetime="{}">{}</time>', here.isoformat(), text)


@register.filter
def second(moment: datetime) -> SafeString:
    """The same to the second, as in `14:32:05`, for what began a short time ago."""
    here = local(moment)
    today = here.date() == local(timezone.now()).date()
    text = f"{here:%H:%M:%S}" if today else f"{here:%Y-%m-%d %H:%M}"
    return format_html('<time datetime="{}">{}</time>', here.isoformat(), text)


def _whole(seconds: float) -> str:
    """A duration without tenths, which would change at every look."""
    return duration(seconds) if seconds >= 60 else f"{seconds:.0f} s"


FIGURES: dict[str, tuple[str, Callable[[Any], str]]] = {
    "duration_s": ("Duration", duration),
    "tokens_per_second": ("Tokens per second", number),
    "peak_memory_bytes": ("Peak memory per GPU", size),
    "cost": ("Cost", money),
}
