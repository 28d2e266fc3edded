"""Options as database rows keep them.

This is the one place that knows their layout, of this release and of earlier ones. Queries that
look into a stored option (of kept promises, of checkpoints on one node) know the present layout
alone, so a version that moves the fields they read needs a migration of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from knowledge.core.domain.types import Config, Interval, Option, Source

VERSION = 1  # of the layout that is written; rows without one are of the first
INTERVALS = ("tokens_per_second", "peak_memory_bytes", "duration_s", "cost")
NAMES = {kind: [field.name for field in fields(kind)] for kind in (Option, Config, Interval)}

Layout = dict[str, Any]
UPGRADES: dict[int, Callable[[Layout], Layout]] = {}  # version -> its layout as the next version has it


def option_json(option: Option) -> Layout:
    """Plain values, to be stored with a job, an attempt or an execution.

    They are those of `Option.as_json`, in a tenth of its time, for which arrays and ticks store many.
    """
    parts = {name: _fields(getattr(option, name)) for name in ("config", *INTERVALS)}
    return {"version": VERSION, **_fields(option), **parts, "by_level": dict(option.by_level)}


def _fields(value: Option | Config | Interval) -> Layout:
    return {name: getattr(value, name) for name in NAMES[type(value)]}


def read_option(raw: Mapping[str, Any]) -> Option:
    """Read an option that `option_json` wrote, of any version so far.

    Raises ValueError for a later version.
    """
    layout = dict(raw)
    version = layout.pop("version", 1)
    if version > VERSION:
        raise ValueError(f"version {version} of an option is later than {VERSION}; upgrade the portal.")
    for earlier in range(version, VERSION):
        layout = UPGRADES[earlier](layout)
    layout.update({name: Interval(**layout[name]) for name in INTERVALS})
    return Option(**{**layout, "config": Config(**layout["config"]), "source": Source(layout["source"])})
