"""Measured figures of an attempt, from the reports of its start and of its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Figures of one attempt, each None until it is reported.

    Counts of tokens include the padding. `tokens` and `step` count from the job's beginning;
    `tokens_per_s` is the steady state of this attempt.
    """

    tokens_total: float | None = None
    row_tokens: float | None = None  # of all rows, each once
    rows: float | None = None
    steps_total: float | None = None
    startup_s: float | None = None
    parameters: float | None = None
    trainable_parameters: float | None = None
    tokens: float | None = None
    tokens_per_s: float | None = None
    train_s: float | None = None
    runtime_s: float | None = None
    saving_s: float | None = None
    evaluation_s: float | None = None
    first_loss: float | None = None
    final_loss: float | None = None
    eval_loss: float | None = None
    step: float | None = None
    total_steps: float | None = None
    software: Mapping[str, str] | None = None  # package -> version
    data_notes: tuple[str, ...] | None = None  # what its owner should know of how the data were read
    output_warnings: tuple[str, ...] | None = None  # of an output that is not all it should be

    def as_json(self) -> dict[str, Any]:
        """Plain values of what was told, to be stored with the attempt."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Measured:
        """Read what `as_json` wrote.

        Unknown names are left out. Raises ValueError where a figure is not a number.
        """
        numbers = {name: float(raw[name]) for name in FIGURES if raw.get(name) is not None}
        return cls(
            **numbers,
            software=raw.get("software"),
            data_notes=_sentences(raw, "data_notes"),
            output_warnings=_sentences(raw, "output_warnings"),
        )


def _sentences(raw: Mapping[str, Any], name: str) -> tuple[str, ...] | None:
    return tuple(raw[name]) if raw.get(name) else None


SENTENCES = ("data_notes", "output_warnings")
_WORDS = {"software", *SENTENCES}
FIGURES = tuple(field.name for field in fields(Measured) if field.name not in _WORDS)
