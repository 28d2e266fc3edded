"""Wishes of a tree that the trainer cannot fulfil, by name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from knowledge.reading.syntax.expressions import Facts
from knowledge.reading.types import FieldValue

SUPPORTED_TASKS = frozenset({"sft", "causal_lm", "clm"})
SUPPORTED_METHODS = frozenset({"full", "lora", "qlora"})
TASK_NAMES = {
    "pretrain": "pretraining",
    "seq_2_seq_lm": "seq2seq",
    "seq_cls": "classification",
    "token_cls": "classification",
    "feature_extraction": "embedding",
}
CALLS = (
    (
        re.compile(
            r"Vision2Seq|ImageTextToText|VisionModel|Idefics|Qwen2?VL|LlavaFor|ForConditionalGeneration.*Vision"
        ),
        "vision",
    ),
    (re.compile(r"ForSequenceClassification|ForTokenClassification"), "classification"),
    (re.compile(r"ForMaskedLM|DataCollatorForWholeWordMask"), "masked_lm"),
    (re.compile(r"ForSeq2SeqLM|Seq2SeqTrainer$"), "seq2seq"),
)
QAT = re.compile(r"(?i)\bqat|QATQuantizer")


def unsupported(values: Mapping[str, FieldValue], scripts: Iterable[Facts]) -> tuple[str, ...]:
    """Names of what the trainer cannot do, each once."""
    found: dict[str, None] = {}
    task, method = _text(values, "task"), _text(values, "method")
    if task and task not in SUPPORTED_TASKS:
        found[TASK_NAMES.get(task, task)] = None
    if method and method not in SUPPORTED_METHODS:
        found[method] = None
    quantization = _text(values, "quantization")
    if quantization in {"bnb-8bit", "int8_weight_only"}:
        found["8bit"] = None
    elif QAT.search(quantization):
        found["qat"] = None
    for facts in scripts:
        for call in facts.calls:
            for pattern, name in CALLS:
                rewarded = name == "classification" and task not in {"", "sft"}
                if (
                    pattern.search(call.name)
                    and not rewarded
                    and not call.name.endswith(("Processor", "Config"))
                ):
                    found[name] = None
        if any(re.search(r"(?i)masked_?lm|mlm", name) for name in facts.functions):
            found["masked_lm"] = None
        if "compute_loss" in facts.functions:
            found["custom_loss"] = None
    return tuple(found)


def _text(values: Mapping[str, FieldValue], name: str) -> str:
    value = values.get(name)
    return value.value.lower() if value is not None and isinstance(value.value, str) else ""
