"""Immutable values of which there are very many.

A frozen dataclass sets each field through a guard, which makes it five times as dear to build as a plain one.
A simulation builds several with dozens of fields for each job.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """A dataclass with slots that mypy, and not each assignment, keeps frozen.

    Equal ones are equal and have the same hash. Fields are given by name.
    """
    return dataclass(slots=True, kw_only=True, unsafe_hash=True)(cls)
