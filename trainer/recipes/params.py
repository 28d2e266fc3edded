"""The parameters of recipes: their types, bounds and defaults, and when they bind."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from trainer.strict_json import is_number, is_whole


class Binds(StrEnum):
    """When a value is settled.

    Values that change the result of learning bind at submission, those about where and how it
    runs at dispatch.
    """

    SUBMIT = "submit"
    DISPATCH = "dispatch"


class ParamError(ValueError):
    """Parameters that cannot be used.

    `fields` maps each wrong field to its fault and the remedy.
    """

    def __init__(self, fields: Mapping[str, str]) -> None:
        self.fields = dict(fields)
        super().__init__("; ".join(f"{name}: {message}" for name, message in self.fields.items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Param:
    """One parameter of a recipe.

    It has a type, bounds or choices, the stated default, and when it binds.

    unit: what a number counts, for people and programs.
    why: of the default, with its source, where it depends on neither model nor data.
    reasons: by value, the sentence that says why a recommendation chose it; `{memory}` is the predicted peak.
    """

    kind: type
    help: str
    binds: Binds
    default: Any = None
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    unit: str = ""
    why: str = ""
    reasons: Mapping[Any, str] = field(default_factory=dict, hash=False)

    def clean(self, value: Any) -> Any:
        """Return the value in the parameter's type.

        Raises ValueError with a sentence for the user.
        """
        if self.kind is bool:
            if not isinstance(value, bool):
                raise ValueError("must be true or false")
            return value
        if self.kind is str:
            return self._text(value)
        if not (is_whole(value) if self.kind is int else is_number(value)):
            raise ValueError(f"must be a {'whole number' if self.kind is int else 'number'}")
        return self._number(value)

    def _text(self, value: Any) -> str:
        if not isinstance(value, str):
            raise ValueError("must be a text")
        if self.choices and value not in self.choices:
            raise ValueError(f"must be one of {', '.join(self.choices)}")
        return value

    def _number(self, value: int | float) -> int | float:
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError("must be a finite number")
        if (self.low is not None and value < self.low) or (self.high is not None and value > self.high):
            raise ValueError(f"must be between {_shown(self.low)} and {_shown(self.high)}")
        return value if self.kind is int else float(value)


def _shown(bound: float | None) -> str:
    return f"{bound:,}" if isinstance(bound, int) else f"{bound:g}"


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that every training of a recipe has.

    It is shown beside those that a person may set.
    """

    value: Any
    help: str
