"""Which statement of each field wins.

It also says what follows from the winners, and where statements contradict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from knowledge.reading.rules.aliases import PLAIN
from knowledge.reading.types import FIELDS, GPUS_PER_NODE, MODEL_PARALLEL, FieldValue, Origin, Statement

VAGUE_CONFIDENCE, TORN_CONFIDENCE = 0.8, 0.7
ADAPTER_FIELDS = ("lora_r", "lora_alpha", "target_modules")

Contradictions = dict[str, tuple[Statement, ...]]


def resolved(statements: Iterable[Statement]) -> tuple[dict[str, FieldValue], Contradictions]:
    """The value of each field, and the statements that contradict each other."""
    by_field: dict[str, list[Statement]] = {}
    for one in statements:
        by_field.setdefault(one.field, []).append(one)
    _resolve_train_batch(by_field)
    shared = any(one.value > 1 for one in by_field.pop(MODEL_PARALLEL, ()))
    values: dict[str, FieldValue] = {}
    torn: Contradictions = {}
    sources: dict[str, Origin] = {}
    for field, found in by_field.items():
        value, differing, origin = _winner(found)
        if differing:
            torn[field] = differing
        else:
            values[field], sources[field] = value, origin
    _resolve_tuning(values, sources)
    _resolve_gpus(values)
    if not shared:  # else there are fewer copies of the model than GPUs
        _resolve_batch(values, sources, torn)
    _resolve_steps(values, sources, torn)
    return {field: value for field, value in values.items() if field in FIELDS}, torn


def _winner(found: list[Statement]) -> tuple[FieldValue, tuple[Statement, ...], Origin]:
    """Choose among the statements of a field.

    They rank by origin, then by how plainly the key means the field, then the first; equal files may
    contradict. Of an option that a command gives twice the last one counts.
    """
    best = max(found, key=lambda one: (one.origin.value, one.weight))
    rivals = [one for one in found if (one.origin, one.weight) == (best.origin, best.weight)]
    if best.origin is Origin.COMMAND:
        best = [one for one in rivals if (one.key, one.place.file) == (best.key, best.place.file)][-1]
    differing = [one for one in rivals if not same(one.value, best.value)]
    across = [one for one in differing if one.place.file != best.place.file]
    if across and best.origin in {Origin.NAMED_FILE, Origin.IMPORTED_FILE}:
        return _value(best, found), (best, *across), best.origin
    value = _value(best, found)
    if differing and best.origin is not Origin.COMMAND:
        value = replace(value, confidence=min(value.confidence, TORN_CONFIDENCE))
    return value, (), best.origin


def _value(best: Statement, found: list[Statement]) -> FieldValue:
    confidence = best.origin.value
    if best.weight < PLAIN - 1:
        confidence = min(confidence, VAGUE_CONFIDENCE)
    lost = [one for one in found if not same(one.value, best.value)]
    same_places = [one.place for one in found if one is not best and same(one.value, best.value)]
    return FieldValue(
        value=best.value,
        confidence=confidence,
        evidence=(best.place, *best.also, *same_places),
        unit=best.unit,
        overridden=tuple(lost),
    )


def same(one: Any, other: Any) -> bool:
    """Do both mean the same value?"""
    if isinstance(one, list) or isinstance(other, list):
        return _parts(one) == _parts(other)
    if isinstance(one, str) and isinstance(other, str):
        return one.strip().rstrip("/").lower() == other.strip().rstrip("/").lower()
    return bool(one == other)


def _parts(value: Any) -> frozenset[str]:
    return frozenset(str(one).lower() for one in (value if isinstance(value, list) else [value]))


def _resolve_train_batch(by_field: dict[str, list[Statement]]) -> None:
    """Resolve what `train_batch_size` means.

    It is the whole batch where that of a device is stated beside it, else a device's.
    """
    found = by_field.pop("train_batch_size", [])
    beside = any(one.weight >= PLAIN for one in by_field.get("per_device_batch_size", []))
    for one in found:
        whole = beside or one.place.file.endswith((".json", ".jsonc")) or one.key.startswith("data.")
        field = "effective_batch_size" if whole else "per_device_batch_size"
        by_field.setdefault(field, []).append(replace(one, field=field))


def _resolve_tuning(values: dict[str, FieldValue], sources: Mapping[str, Origin]) -> None:
    """An adapter's rank says lora; 4 bits with an adapter are qlora."""
    tuning = values.get("tuning")
    rank = values.get("lora_r")
    if tuning is None and rank is not None and sources["lora_r"] is not Origin.DEFAULT:
        tuning = values["tuning"] = replace(rank, value="lora", unit=None, overridden=())
    quantization = values.get("quantization")
    four_bits = quantization is not None and quantization.value == "bnb-4bit"
    if tuning is not None and quantization is not None and four_bits and tuning.value == "lora":
        evidence = (*tuning.evidence, *quantization.evidence)
        confidence = min(tuning.confidence, quantization.confidence)
        values["tuning"] = replace(tuning, value="qlora", evidence=evidence, confidence=confidence)
    if tuning is not None and tuning.value == "full":
        for field in ADAPTER_FIELDS:
            if sources.get(field) is Origin.DEFAULT:
                values.pop(field, None)


def _resolve_gpus(values: dict[str, FieldValue]) -> None:
    """Resolve the number of GPUs: those of a node times the nodes.

    Where one node or none is stated, they are those of a node.
    """
    total, each, nodes = (values.get(field) for field in ("number_gpus", GPUS_PER_NODE, "number_nodes"))
    if each is not None and (total is None or each.confidence > total.confidence):
        if nodes is None or nodes.value == 1:
            values["number_gpus"] = each
        else:
            values["number_gpus"] = _derived(each.value * nodes.value, each, nodes)
    elif total is not None and each is not None and nodes is None and total.value > each.value:
        whole, rest = divmod(total.value, each.value)
        if not rest:
            values["number_nodes"] = _derived(whole, total, each)


def _resolve_batch(
    values: dict[str, FieldValue], sources: Mapping[str, Origin], torn: Contradictions
) -> None:
    """Resolve the batch: that of a device times accumulation times GPUs.

    The missing one follows.
    """
    each, accumulated, gpus, whole = (
        values.get(field)
        for field in (
            "per_device_batch_size",
            "gradient_accumulation_steps",
            "number_gpus",
            "effective_batch_size",
        )
    )
    if each is None or gpus is None or "effective_batch_size" in torn:
        return
    defaults = Origin.DEFAULT in {
        sources.get("per_device_batch_size"),
        sources.get("gradient_accumulation_steps"),
    }
    if whole is None and accumulated is not None and not defaults:
        product = each.value * accumulated.value * gpus.value
        values["effective_batch_size"] = _derived(product, each, accumulated, gpus)
    elif whole is not None and accumulated is None:
        shares, rest = divmod(whole.value, each.value * gpus.value)
        if shares and not rest and sources.get("per_device_batch_size") is not Origin.DEFAULT:
            values["gradient_accumulation_steps"] = _derived(shares, whole, each, gpus)
    elif whole is not None and accumulated is not None and not defaults:
        product = each.value * accumulated.value * gpus.value
        if product != whole.value:
            del values["effective_batch_size"]
            torn["effective_batch_size"] = (
                _stated("effective_batch_size", whole),
                replace(_stated("effective_batch_size", each), value=product, key="derived"),
            )


def _resolve_steps(
    values: dict[str, FieldValue],
    sources: Mapping[str, Origin],
    torn: Contradictions,
) -> None:
    """Resolve the length: epochs beside a number of steps contradict.

    Trainers differ in which of them ends a training.
    """
    if "epochs" not in values or "max_steps" not in values:
        return
    default = [field for field in ("epochs", "max_steps") if sources[field] is Origin.DEFAULT]
    if len(default) == 1:
        del values[default[0]]
        return
    torn["epochs+max_steps"] = tuple(_stated(field, values.pop(field)) for field in ("epochs", "max_steps"))


def _derived(value: Any, *parts: FieldValue) -> FieldValue:
    return FieldValue(
        value=value,
        confidence=min(part.confidence for part in parts),
        evidence=tuple(part.evidence[0] for part in parts),
        derived=True,
    )


def _stated(field: str, value: FieldValue) -> Statement:
    return Statement(field=field, value=value.value, place=value.evidence[0], origin=Origin.NAMED_FILE)
