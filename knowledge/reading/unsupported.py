"""Wishes of a tree that the trainer cannot fulfil, and keys that it does not know."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from knowledge.reading.rules.commands import Invocation
from knowledge.reading.rules.special_keys import SUPERVISED
from knowledge.reading.syntax.expressions import Facts
from knowledge.reading.tool_tables import StatedKey, ToolTable, any_tool, plain_path, tool_tables
from knowledge.reading.types import FieldValue
from knowledge.reading.values import can_be_kept
from trainer.recipes import RECIPES

SUPPORTED_TASKS = frozenset(task for recipe in RECIPES.values() for task in recipe.tasks)
SUPPORTED_TUNINGS = frozenset({"full", "lora", "qlora"})
TASK_NAMES = {
    "pretrain": "pretraining",
    "pt": "pretraining",
    "rm": "reward",
    "gkd": "distillation",
    "seq_2_seq_lm": "seq2seq",
    "seq_cls": "classification",
    "token_cls": "classification",
    "feature_extraction": "embedding",
}
QAT = re.compile(r"(?i)\bqat|QATQuantizer")
# Calls whose arguments are keys of these libraries.
SETTINGS = re.compile(r"(?:^|\.)(?:\w*TrainingArguments|\w*(?:SFT|Lora)Config|get_peft_model|SFTTrainer)$")
# A tree whose command is not known is for the tool that has most of its keys, if it has so many.
FEWEST_KEYS = 4
LEAST_KNOWN, LEAST_OWN = 0.8, 0.25  # shares: of keys read by anybody's name, and of the tool's own ones
MOST_NAMED = 100


@dataclass(slots=True)
class StatedKeys:
    """What a tree states under its tool's names: keys, and commands that start it."""

    keys: list[StatedKey] = field(default_factory=list)
    started: list[Invocation] = field(default_factory=list)


def unsupported(
    values: Mapping[str, FieldValue], scripts: Sequence[Facts], stated: StatedKeys
) -> tuple[str, ...]:
    """Names of what the trainer cannot do, each once."""
    found: dict[str, None] = {}
    task, tuning = _text(values, "task"), _text(values, "tuning")
    if task and task not in SUPPORTED_TASKS:
        found[TASK_NAMES.get(task, task)] = None
    if tuning and tuning not in SUPPORTED_TUNINGS:
        found["DoRA" if tuning == "dora" else tuning] = None
    quantization = _text(values, "quantization")
    if quantization in {"bnb-8bit", "int8_weight_only"}:
        found["8bit"] = None
    elif QAT.search(quantization):
        found["qat"] = None
    for tool in tools_of(scripts, stated) or [any_tool()]:
        for invocation in stated.started:
            found |= dict.fromkeys(tool.commanded(_words(invocation)))
        for key in stated.keys:
            found |= dict.fromkeys(tool.asked(key))
    for facts in scripts:
        found |= dict.fromkeys(_called(facts, task))
        if any(re.search(r"(?i)masked_?lm|mlm", name) for name in facts.functions):
            found["masked_lm"] = None
        if "compute_loss" in facts.functions:
            found["custom_loss"] = None
    return tuple(filter(can_be_kept, found))[:MOST_NAMED]


def unknown_keys(scripts: Sequence[Facts], stated: StatedKeys) -> tuple[str, ...]:
    """Keys that stand in no table of the tool that the tree is for.

    None where the tool is not known.
    """
    tools = [] if scripts else tools_of(scripts, stated)
    if len(tools) != 1:
        return ()
    unknown = (".".join(plain_path(key.path)) for key in stated.keys if not tools[0].knows(key.path))
    return tuple(filter(can_be_kept, dict.fromkeys(unknown)))[:MOST_NAMED]


def tools_of(scripts: Sequence[Facts], stated: StatedKeys) -> list[ToolTable]:
    """The tools that a command starts, a key marks or a script imports.

    Else the one that has the keys.
    """
    tables = [table for table in tool_tables().values() if table.programs]
    started = [table for table in tables if any(table.starts(_words(one)) for one in stated.started)]
    if started:
        return started
    last_keys = {plain_path(key.path)[-1] for key in stated.keys if plain_path(key.path)}
    if marked := [table for table in tables if table.marks & last_keys]:
        return marked
    if scripts:
        imports = {module.partition(".")[0] for facts in scripts for module in facts.modules}
        return [table for table in tables if table.name in imports]
    shares = {table.name: _share(table, stated.keys) for table in tables}
    most = max(shares.values(), default=0)
    likely = most and len(last_keys) >= FEWEST_KEYS
    return [table for table in tables if likely and shares[table.name] == most]


def _share(table: ToolTable, keys: Sequence[StatedKey]) -> float:
    """The share of keys that the tool itself has; 0 where it lacks too many."""
    own = sum(table.has(key.path) for key in keys)
    known = sum(table.knows(key.path) for key in keys)
    enough = known >= LEAST_KNOWN * len(keys) and own >= LEAST_OWN * len(keys)
    return own / len(keys) if keys and enough else 0


def _words(invocation: Invocation) -> list[str]:
    """The program, its subcommand and what follows."""
    words = [word.text for word in (invocation.target, *invocation.positional[:2]) if word is not None]
    return [invocation.launcher, *words]


def _called(facts: Facts, task: str) -> Iterable[str]:
    """What calls ask for by their names, and by arguments of libraries' settings."""
    for call in facts.calls:
        for expression, name in _calls().items():
            rewarded = name == "classification" and task not in {"", SUPERVISED}
            other = call.name.endswith(("Processor", "Config"))
            if expression.search(call.name) and not rewarded and not other:
                yield name
        if call.name.endswith(".add_special_tokens") and "additional_special_tokens" in facts.strings:
            yield "new tokens"
        if SETTINGS.search(call.name):
            for keyword, known in call.keywords.items():
                yield from tool_tables()["trl"].asked(StatedKey((keyword,), known.value))


@cache
def _calls() -> dict[re.Pattern[str], str]:
    """What calls ask for, by an expression for their names."""
    calls = (one for table in tool_tables().values() for one in table.calls.items())
    return {re.compile(expression): name for expression, name in calls}


def _text(values: Mapping[str, FieldValue], name: str) -> str:
    value = values.get(name)
    return value.value.lower() if value is not None and isinstance(value.value, str) else ""
