"""The meaning of a named value, wherever it stands.

It may stand in a configuration, on a command line or in a call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from knowledge.reading.rules.aliases import ALIASES, PLAIN, VAGUE
from knowledge.reading.rules.special_keys import BELOW, SPECIAL, Meaning
from knowledge.reading.values import CLEAN

# Parts of a path under which nothing is about the training itself.
ELSEWHERE = re.compile(
    r"(^|_)(eval|evaluation|evaluator|validation|val|valid|test|generation|generate|sampling|infer|inference"
    r"|profiler|profile|logger|logging|wandb|tracker|ema|teacher|critic|reward|judge|vllm|rollout|ref"
    r"|reference|metric|metrics|log|hub|export|benchmark|split|callbacks?|ds_construct_args)(_|$)"
)
OPTIMIZER, SCHEDULER = re.compile(r"^(optim|optimizer)(_cfg|_wrapper)?$"), re.compile(r"sched")
ADAPTER = re.compile(r"(^|_)(lora|peft|adapter)(_|$)")
MODEL, DATA = (
    re.compile(r"^(model|checkpointer|policy|actor|llm)$"),
    re.compile(r"^(data|datasets?|train_data\w*)$"),
)
BARE = 5
NAMING = frozenset({"name", "type", "_component_", "class_path", "_target_", "path", "id", "scheduler_type"})


def meanings(path: tuple[str, ...], raw: Any) -> Iterator[Meaning]:
    """The fields that a value under this path states; nothing where none is meant."""
    keys = [key.lower().replace("-", "_").replace(" ", "_") for key in path if not key.startswith("[")]
    if not keys or any(ELSEWHERE.search(key) for key in keys[:-1]):
        return
    last, near = keys[-1], keys[-2] if len(keys) > 1 else ""
    if last in SPECIAL:
        yield from SPECIAL[last](raw)
        return
    if last in BELOW:
        yield from BELOW[last](near, raw)
        return
    if ELSEWHERE.search(last):
        return
    field, weight = _named(keys)
    if field is None:
        return
    if field == "seed" and any(DATA.match(key) for key in keys[:-1]):
        return
    value = CLEAN[field](raw)
    if value is not None:
        bare = field == "base_model" and "/" not in value  # rather a kind of model, or its name afterwards
        yield Meaning(field, value, weight - BARE * bare)


def _named(keys: list[str]) -> tuple[str | None, int]:
    """The field that the last key means below its parents."""
    last, parents = keys[-1], keys[:-1]
    near = parents[-1] if parents else ""
    if last in NAMING and parents:
        return _what_is_named(last, parents)
    if near == "checkpoint" and last == "interval":
        return "checkpoint_interval", PLAIN
    if near in {"activation_checkpoint", "activation_checkpointing"} and last == "mode":
        return "gradient_checkpointing", PLAIN
    if ADAPTER.search(near) and last in {"r", "rank", "dim", "alpha"}:
        return ("lora_alpha" if last == "alpha" else "lora_r"), PLAIN
    if last == "stage" and "zero" in near:
        return "sharding", PLAIN
    found = ALIASES.get(last)
    if found is None:
        return None, 0
    field, weight = found
    if field in {"base_model", "dataset"} and near in {"hub", "output", "save"}:
        return None, 0
    return field, weight


def _what_is_named(last: str, parents: list[str]) -> tuple[str | None, int]:
    near = parents[-1]
    if SCHEDULER.search(near):
        return "lr_schedule", PLAIN
    if OPTIMIZER.match(near):
        return "optimizer", PLAIN
    if near == "quantizer":
        return "quantization", VAGUE
    if DATA.match(near) and not any(SCHEDULER.search(key) for key in parents):
        return "dataset", PLAIN + (last in {"path", "id", "name"})
    if MODEL.match(near) and last in {"name", "path", "id"}:
        return "base_model", PLAIN - 1
    if MODEL.match(near) and last == "_component_":
        return "base_model", VAGUE - 1
    return None, 0
