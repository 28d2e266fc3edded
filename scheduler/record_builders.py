"""Functions that build records of which a simulation makes several for each job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any, ParamSpec, TypeVar, cast

T = TypeVar("T")
P = ParamSpec("P")


def builder(cls: Callable[P, T]) -> Callable[P, T]:
    """Return a function that builds a record as its class does.

    It takes two thirds of the time: Python 3.11 puts what a class is given by name into a dictionary, and
    what a function is given on the stack. Fields must not have default factories.
    """
    scope: dict[str, Any] = {"cls": cls, "new": object.__new__}
    parameters, body = [], ["made = new(cls)"]
    for one in fields(cast(Any, cls)):
        has_default = one.default is not MISSING
        scope[f"default_{one.name}"] = one.default
        parameters.append(f"{one.name}=default_{one.name}" if has_default else one.name)
        body.append(f"made.{one.name} = {one.name}")
    lines = "\n    ".join([f"def build({', '.join(parameters)}):", *body, "return made"])
    exec(lines, scope)  # noqa: S102  of names of fields alone, as dataclasses do it
    return cast("Callable[P, T]", scope["build"])
