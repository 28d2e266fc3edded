"""Immutable values of which there are very many.

A frozen dataclass sets each field through a guard, which makes it five times as dear to build as a plain one.
A simulation builds several with dozens of fields for each job. One whose fields can be given by name alone
is dearer by a half, for Python looks each default of such an argument up in a dictionary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, dataclass_transform, overload

T = TypeVar("T")


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
