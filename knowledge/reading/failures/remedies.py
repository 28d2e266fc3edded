"""The change of a job that removes a cause, where one does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from trainer.recipes.common import launch_conflicts

Values = Mapping[str, Any]
Changes = dict[str, Any]
CPU = "cpu"  # the GPU model of slots of CPU nodes
SHORTEST = 256  # tokens; shorter samples are no remedy


def remedied(cause: str, values: Values, fixed: Values) -> Changes:
    """Return parameters with their new values.

    It is the first change that goes with what the user fixed.

    values: what the attempt ran with, the fixed ones among them.
    """
    candidates = _CHANGES.get(cause, _none)
    return next((changes for changes in candidates(values, fixed) if _goes_with(fixed, changes)), {})


def _goes_with(fixed: Values, changes: Changes) -> bool:
    return not launch_conflicts({**fixed, **changes})


def _none(_: Values, __: Values) -> Iterator[Changes]:
    yield from ()


def _less_memory(values: Values, fixed: Values) -> Iterator[Changes]:
    """The cheapest remedy comes first."""
    batch = values.get("per_device_batch_size") or 1
    if batch > 1:
        yield _smaller_batch(batch, fixed)
    if values.get("gradient_checkpointing") is False:
        yield {"gradient_checkpointing": True}
    if values.get("tuning") == "lora" and values.get("gpu_model") != CPU:
        yield {"tuning": "qlora"}
    length = values.get("tokens_per_sample") or 0
    if length // 2 >= SHORTEST:
        yield {"tokens_per_sample": length // 2}


def _smaller_batch(batch: int, fixed: Values) -> Changes:
    """Divide by the smallest factor, so that the effective batch stays as it is."""
    factor = next(n for n in range(2, batch + 1) if batch % n == 0)
    changes = {"per_device_batch_size": batch // factor}
    if kept := fixed.get("gradient_accumulation_steps"):
        changes["gradient_accumulation_steps"] = kept * factor
    return changes


def _less_main_memory(values: Values, fixed: Values) -> Iterator[Changes]:
    """On slots of CPU nodes the training itself fills the main memory."""
    if values.get("gpu_model") == CPU:
        yield from _less_memory(values, fixed)


def _slower(values: Values, _: Values) -> Iterator[Changes]:
    if rate := values.get("learning_rate"):
        yield {"learning_rate": float(f"{rate / 4:.2g}")}


def _longer(values: Values, _: Values) -> Iterator[Changes]:
    if length := values.get("tokens_per_sample"):
        yield {"tokens_per_sample": 2 * length}


def _half_precision(_: Values, __: Values) -> Iterator[Changes]:
    yield {"precision": "float16"}


_CHANGES: dict[str, Callable[[Values, Values], Iterator[Changes]]] = {
    "gpu-memory": _less_memory,
    "host-memory": _less_main_memory,
    "loss-not-finite": _slower,
    "nothing-to-learn": _longer,
    "no-bfloat16": _half_precision,
}
