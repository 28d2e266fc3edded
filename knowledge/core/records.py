"""Immutable values of which there are very many.

A frozen dataclass sets each field through a guard, which makes it five times as dear to build as a plain one.
A simulation builds several with dozens of fields for each job. One whose fields can be given by name alone
is dearer by a half, for Python looks each default of such an argument up in a dictionary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ParamSpec, TypeVar, cast, dataclass_transform, overload

T = TypeVar("T")
P = ParamSpec("P")


@overload
def record(cls: type[T]) -> type[T]: ...
@overload
def record(*, kw_only: bool) -> Callable[[type[T]], type[T]]: ...


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def record(cls: type[T] | None = None, *, kw_only: bool = True) -> Any:  # noqa: ARG001  mypy reads it
    """A dataclass with slots that mypy, and not each assignment, keeps frozen.

    Equal ones are equal and have the same hash. Fields are given by name, unless kw_only is false; mypy keeps
    that, too.
    """
    made = dataclass(slots=True, unsafe_hash=True)
    return made if cls is None else made(cls)


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
