"""The parts of a reading.

These are files with a command, statements with their places, and the values that win.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

COMMAND_FILE = "command"  # the place of what the command itself states

FIELDS = (
    "task",
    "base_model",
    "tuning",
    "lora_r",
    "lora_alpha",
    "target_modules",
    "quantization",
    "tokens_per_sample",
    "per_device_batch_size",
    "gradient_accumulation_steps",
    "effective_batch_size",
    "epochs",
    "max_steps",
    "learning_rate",
    "lr_schedule",
    "warmup",
    "weight_decay",
    "adam_beta2",
    "clip_norm",
    "optimizer",
    "precision",
    "gradient_checkpointing",
    "sharding",
    "number_gpus",
    "number_nodes",
    "gpu_model",
    "dataset",
    "dataset_rows",
    "seed",
    "checkpoint_interval",
)
RULES, MODEL = "rules", "model"  # whose reading a value is
GPUS_PER_NODE = "gpus_per_node"  # a part of the number of GPUs, not a field
MODEL_PARALLEL = "model_parallel"  # GPUs that share one copy of the model; no field either


class Origin(Enum):
    """Where a statement stands, with the confidence that it deserves.

    The larger one wins.
    """

    COMMAND = 1.0
    NAMED_FILE = 0.95
    IMPORTED_FILE = 0.9
    SCRIPT = 0.86
    DEFAULT = 0.7


@dataclass(frozen=True, slots=True)
class Location:
    """Lines of a file, from 1."""

    file: str
    line: int
    end_line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One place that states a value of a field.

    key: the name under which it stands there. weight: how plainly the key means the field; among statements
    of one origin the larger one wins. unit: of a warm-up, `ratio` or `steps`.
    """

    field: str
    value: Any
    place: Location
    origin: Origin
    key: str = ""
    weight: int = 5
    unit: str | None = None
    also: tuple[Location, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldValue:
    """The belief about a field.

    `overridden`: statements that lost to it. `derived`: from other fields. `by`: the rules or a model.
    """

    value: Any
    confidence: float
    evidence: tuple[Location, ...]
    unit: str | None = None
    overridden: tuple[Statement, ...] = ()
    derived: bool = False
    by: str = RULES


@dataclass(frozen=True, slots=True)
class Tree:
    """Texts by path, and the command that starts the training, if it is known."""

    files: Mapping[str, str]
    command: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The statements of a tree.

    `contradictions`: fields with the statements of equal rank that differ.

    unsupported: what the trainer cannot do. unknown_keys: names that stand in no table of the tree's tool, so
    that nobody knows what they ask for. unreadable: files that could not be parsed, with the reason.
    """

    values: Mapping[str, FieldValue]
    contradictions: Mapping[str, tuple[Statement, ...]] = field(default_factory=dict)
    unsupported: tuple[str, ...] = ()
    unknown_keys: tuple[str, ...] = ()
    unreadable: Mapping[str, str] = field(default_factory=dict)
