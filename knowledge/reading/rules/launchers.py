"""Statements of launchers, job schedulers and trainers' recipes in commands."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from knowledge.reading.rules.aliases import PLAIN, VAGUE
from knowledge.reading.rules.commands import GivenOption, Invocation
from knowledge.reading.rules.keys import meanings
from knowledge.reading.rules.scripts import statement
from knowledge.reading.rules.special_keys import SUPERVISED, Meaning
from knowledge.reading.syntax.shell import Word
from knowledge.reading.types import GPUS_PER_NODE, Origin, Statement
from knowledge.reading.values import count, text

GPU = re.compile(
    r"(?i)^(nvidia[-_])?(a10g?|a16|a30|a40|a100|h100|h200|b200|gh200|l4|l40s?|t4|v100|p100|rtx\w*|mi\d+\w*)([-_].*)?$"
)
NAMES = {
    "nproc_per_node": GPUS_PER_NODE,
    "nproc-per-node": GPUS_PER_NODE,
    "gpus-per-node": GPUS_PER_NODE,
    "gpus_per_node": GPUS_PER_NODE,
    "num_gpus": GPUS_PER_NODE,
    "num_processes": "number_gpus",
    "nnodes": "number_nodes",
    "nodes": "number_nodes",
    "N": "number_nodes",
    "num_nodes": "number_nodes",
    "num_machines": "number_nodes",
    "gpus": "number_gpus",
    "G": "number_gpus",
}
TASK_WORDS = {
    SUPERVISED: SUPERVISED,
    "dpo": "dpo",
    "kto": "kto",
    "grpo": "grpo",
    "ppo": "ppo",
    "orpo": "orpo",
    "reward": "reward",
    "rlhf": "rlhf",
    "pretrain": "pretrain",
    "pt": "pretrain",
    "rloo": "rloo",
}


def launched(found: Invocation) -> Iterator[Statement]:
    """Statements of the launcher's options and the environment."""
    for option in found.launcher_options:
        yield from _launcher_option(option, found.launcher)
    for word in found.environment:
        name, _, value = word.text.partition("=")
        for meaning in meanings((name,), value):
            if name in {"CUDA_VISIBLE_DEVICES", "NPROC_PER_NODE", "NNODES"}:
                yield statement(meaning, word.place, Origin.COMMAND, name, word.also)
    yield from _recipe(found)


def scheduled(options: Sequence[Word]) -> Iterator[Statement]:
    """Read what the options of Slurm and its like state.

    They stand in comments of a script.
    """
    at = 0
    while at < len(options):
        word = options[at]
        name, equals, value = word.text.lstrip("-").partition("=")
        if not equals and at + 1 < len(options) and not options[at + 1].text.startswith("-"):
            at += 1
            value = options[at].text
        at += 1
        yield from _scheduler_option(name, value, word)


def _launcher_option(option: GivenOption, launcher: str) -> Iterator[Statement]:
    name, value = option.name, option.value
    if name == "n" and launcher in {"composer", "fabric"}:
        name = "nproc_per_node"
    if name == "standalone":
        yield _said("number_nodes", 1, option, VAGUE)
    elif name in {"multi_gpu", "multi-gpu"} and value is True:
        yield _said("sharding", "ddp", option, VAGUE)
    elif name == "include" and isinstance(value, str):
        ids = re.findall(r"\d+", value.rpartition(":")[2])
        if ids and "@" not in value:
            yield _said(GPUS_PER_NODE, len(ids), option)
    elif name in {"gpus", "devices"} and isinstance(value, str) and "," in value:
        yield _said(GPUS_PER_NODE, len(re.findall(r"\d+", value)), option)
    elif name in {"gres", "gpus", "G", "gpus-per-node", "constraint", "C"} and isinstance(value, str):
        yield from _scheduler_option(name, value, Word(value, option.place, option.also))
    elif name in NAMES:
        number = count(str(value).partition(":")[0])
        if number:
            yield _said(NAMES[name], number, option)
    elif name not in {"config_file", "main_process_port", "master_port", "m"}:
        for meaning in meanings((name,), value):
            if meaning.field in {"precision", "sharding", "gradient_accumulation_steps"}:
                yield statement(meaning, option.place, Origin.COMMAND, name, option.also)


def _said(field: str, value: object, option: GivenOption, weight: int = PLAIN) -> Statement:
    return statement(Meaning(field, value, weight), option.place, Origin.COMMAND, option.name, option.also)


def _scheduler_option(name: str, value: str, word: Word) -> Iterator[Statement]:
    def said(field: str, stated: object, weight: int = PLAIN) -> Statement:
        return statement(Meaning(field, stated, weight), word.place, Origin.COMMAND, name, word.also)

    if name in {"gres", "gpus", "G", "gpus-per-node", "gpus-per-task"}:
        parts = [part for part in value.split(":") if part != "gpu"]
        number = count(parts[-1]) if parts else None
        if number:
            yield said("number_gpus" if name in {"gpus", "G"} else GPUS_PER_NODE, number)
        model = next((part for part in parts if GPU.match(part)), None)
        if model:
            yield said("gpu_model", model)
    elif name in {"constraint", "C"} and GPU.match(value):
        yield said("gpu_model", value, VAGUE)
    elif name in {"nodes", "N"} and (number := count(value.partition("-")[0])):
        yield said("number_nodes", number)


def _recipe(found: Invocation) -> Iterator[Statement]:
    """Statements in the name of a recipe or subcommand."""
    target = found.target
    if target is None or found.launcher not in {"tune", "litgpt", "trl", "swift"}:
        return

    def said(field: str, value: object, weight: int = PLAIN, origin: Origin = Origin.COMMAND) -> Statement:
        return statement(Meaning(field, value, weight), target.place, origin, target.text)

    name = (
        target.text.lower().removeprefix("finetune_") if found.launcher == "litgpt" else target.text.lower()
    )
    name = name.replace("-", "_").rpartition("/")[2].removesuffix(".py")
    if found.launcher == "litgpt":
        yield said("task", "pretrain" if "pretrain" in name else SUPERVISED, VAGUE)
        if name in {"lora", "full", "adapter", "adapter_v2"}:
            yield said("tuning", name)
        if found.positional and name != "finetune" and (model := text(found.positional[0].text)):
            word = found.positional[0]
            yield statement(Meaning("base_model", model), word.place, Origin.COMMAND, target.text, word.also)
        return
    if name in TASK_WORDS:
        yield said("task", TASK_WORDS[name])
    if found.launcher != "tune":
        return
    yield said("task", next((word for word in ("dpo", "ppo", "grpo") if word in name), SUPERVISED), VAGUE)
    if "dpo" in name or "finetune" in name:
        # The configuration may name a builder that says more, as qlora's.
        yield said("tuning", "lora" if "lora" in name else "full", VAGUE, Origin.IMPORTED_FILE)
    if "distributed" in name:
        yield said("sharding", "fsdp", VAGUE)
    if "single_device" in name:
        yield said("number_gpus", 1, VAGUE)
