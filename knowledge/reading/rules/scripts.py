"""The statements of a Python script.

It does so in its calls, its constants and the defaults of its options.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from knowledge.reading.rules.aliases import ALIASES, PLAIN, VAGUE
from knowledge.reading.rules.keys import meanings
from knowledge.reading.rules.special_keys import SUPERVISED, Meaning
from knowledge.reading.rules.variants import without_variants
from knowledge.reading.syntax.expressions import Call, Facts, Known
from knowledge.reading.types import Location, Origin, Statement
from knowledge.reading.values import CLEAN, schedule

LocationOf = Callable[[Known], Location]

TRAINER = re.compile(r"(?:^|\.)(\w+?)Trainer$")
TASKS = {
    "SFT": SUPERVISED,
    "DPO": "dpo",
    "OnlineDPO": "online_dpo",
    "KTO": "kto",
    "GRPO": "grpo",
    "PPO": "ppo",
    "PPOv2": "ppo",
    "RLOO": "rloo",
    "ORPO": "orpo",
    "CPO": "cpo",
    "BCO": "bco",
    "Reward": "reward",
    "PRM": "prm",
    "NashMD": "nash_md",
    "XPO": "xpo",
    "GKD": "gkd",
    "IterativeSFT": SUPERVISED,
    "DDPO": "ddpo",
    "AlignProp": "alignprop",
}
OPTIMIZER = re.compile(
    r"(?:^|\.)(\w*(?:Adam|AdamW|Adafactor|SGD|Lion|Lamb|LAMB|Adagrad|RMSprop|Sophia\w*|Muon|Adan|Prodigy)(?:\w*bit)?(?:W)?(?:Mini|_mini)?)$"
)
OTHER_OPTIMIZER = re.compile(r"(Args|Arguments|Config|Configuration)$")
SCHEDULE = re.compile(
    r"(?:^|\.)(get_\w+_schedule\w*|\w*(?:Cosine|Linear|Constant|Polynomial|OneCycle)\w*LR)$"
)
LOADER = re.compile(
    r"^(.*AutoModel\w*|.*ForCausalLM|.*LMHeadModel|.*ForConditionalGeneration|.*FastLanguageModel"
    r"|.*FastModel|.*FastVisionModel|.*ForSequenceClassification|.*ForMaskedLM|LLM|GPT|AutoLigerKernel\w*)\.from_pretrained$"
)
OTHER_LOADER = re.compile(r"(AutoTokenizer|AutoProcessor|AutoConfig|Tokenizer\w*)\.from_pretrained$")
FILE_FORMATS = frozenset({"json", "csv", "text", "parquet", "jsonl", "arrow"})
PLAIN_CALL = re.compile(
    r"(Arguments|Args|Config|Trainer|Accelerator|get_peft_model|from_pretrained|parse_obj|Module)$"
)
WITHOUT_MEANING = re.compile(
    r"(eval|generat|pipeline|plot|log|wandb|SamplingParams|vllm|print|format|push_to_hub|save_pretrained|snapshot"
    r"|train_test_split|\.sort|\.map$|\.filter$|range$|Dropout|Linear$|Conv|Embedding|init$|ArgumentParser)",
    re.IGNORECASE,
)
ADAPTERS = {"PrefixTuning": "prefix_tuning", "PromptTuning": "prompt_tuning", "PromptEncoder": "p_tuning"}
TASK_TYPES = {"seq_2_seq_lm", "seq_cls", "token_cls", "causal_lm", "feature_extraction", "question_ans"}


def linked(facts: Facts) -> dict[str, str]:
    """The field that an option's value is passed to, by the option's name."""
    found: dict[str, str] = {}
    for call in facts.calls:
        if WITHOUT_MEANING.search(call.name):
            continue
        for name, known in call.keywords.items():
            if known.argument and name != known.argument:
                for meaning in meanings(
                    (_owner(call), name), known.value if known.value is not None else "1"
                ):
                    found.setdefault(known.argument, meaning.field)
        if OPTIMIZER.search(call.name) or LOADER.match(call.name) or call.name.endswith("load_dataset"):
            first = call.positional[0] if call.positional else None
            if first is not None and first.argument and not OPTIMIZER.search(call.name):
                found.setdefault(first.argument, "base_model" if LOADER.match(call.name) else "dataset")
    return found


def field_of(name: str, links: Mapping[str, str]) -> str | None:
    """The field that an option of the script means."""
    alias = ALIASES.get(name.lower())
    link = links.get(name)
    return link if link and (alias is None or alias[1] < PLAIN) else None


def defaults(facts: Facts, links: Mapping[str, str], place: LocationOf) -> Iterator[Statement]:
    """The defaults of the script's options."""
    for name, argument in facts.arguments.items():
        if argument.default is not None:
            yield from option_statements(
                name, argument.default.value, links, place(argument.default), Origin.DEFAULT
            )


def option_statements(
    name: str,
    value: Any,
    links: Mapping[str, str],
    place: Location,
    origin: Origin,
    also: Sequence[Location] = (),
) -> Iterator[Statement]:
    """Return what an option states.

    It goes by the field that its value is passed to, else by its name.
    """
    field = field_of(name, links)
    if name == "checkpoint_dir" and origin in (Origin.COMMAND, Origin.DEFAULT):
        return  # where checkpoints go, but for two trainers whose configurations say so
    if field is None:
        found: Iterator[Meaning] = meanings(tuple(name.split(".")), value)
    else:
        cleaned = CLEAN[field](value)
        found = iter([Meaning(field, cleaned)] if cleaned is not None else [])
    for meaning in found:
        yield statement(meaning, place, origin, name, also)


def statement(
    meaning: Meaning, place: Location, origin: Origin, key: str, also: Sequence[Location] = ()
) -> Statement:
    return Statement(
        field=meaning.field,
        value=meaning.value,
        place=place,
        origin=origin,
        key=key,
        weight=meaning.weight,
        unit=meaning.unit,
        also=tuple(also),
    )


def spelled(facts: Facts, flag: str) -> str:
    """Return the name of the option that is given by this flag.

    It is the flag itself if the script takes none such.
    """
    even = flag.replace("-", "_")
    return next((name for name, one in facts.arguments.items() if even in one.flags or even == name), even)


def stated(facts: Facts, place: LocationOf) -> Iterator[Statement]:
    """Statements of constants, mappings and calls as literals."""
    for name, known in ((name, known) for name, all_of in facts.constants.items() for known in all_of):
        if not known.argument:
            yield from _meant((name.rpartition(".")[2],), known, place, -2)
    for path, known in without_variants(facts.entries):
        if not known.argument:
            yield from _meant(path, known, place, -1)
    trained = {call.names["train_dataset"] for call in facts.calls if call.names.get("train_dataset")}
    over = min((call.line for call in facts.calls if call.name.endswith("rainer.train")), default=None)
    for call in facts.calls:
        for one in _called(call, place):
            yield replace(one, weight=one.weight + _likelier(call, one.field, trained, over))


def _likelier(call: Call, field: str, trained: Collection[str], over: int | None) -> int:
    """Return how much more a call says of the training than others.

    A model loaded after it is used for other things.
    """
    if field in {"dataset", "base_model"} and over is not None and call.line > over:
        return -PLAIN
    if field == "dataset" and trained:
        return 1 if call.target in trained else -1
    return 2 if field == "base_model" and TRAINER.search(call.name) else 0


def _meant(path: tuple[str, ...], known: Known, place: LocationOf, lighter: int) -> Iterator[Statement]:
    for meaning in meanings(path, known.value):
        lighter_one = Meaning(meaning.field, meaning.value, meaning.weight + lighter, meaning.unit)
        yield statement(lighter_one, place(known), Origin.SCRIPT, path[-1])


def _owner(call: Call) -> str:
    """A word for what is called, as the parent of its arguments."""
    last = call.name.rpartition(".")[2]
    return "lora" if last == "LoraConfig" or last == "get_peft_model" else "call"


def _called(call: Call, place: LocationOf) -> Iterator[Statement]:
    here = Known(None, call.line, call.line)
    yield from _by_callee(call, place, here)
    if WITHOUT_MEANING.search(call.name) and not PLAIN_CALL.search(call.name):
        return
    if re.search(r"(?i)eval|generation|sampling", call.name):
        return
    if call.name.endswith("DataLoader") and re.search(r"(?i)eval|val|test", call.first_name):
        return
    lighter = 0 if PLAIN_CALL.search(call.name) or OPTIMIZER.search(call.name) else -3
    for name, known in call.keywords.items():
        if known.argument:
            continue
        value = known.value
        if known.name and name not in {"torch_dtype", "dtype", "bnb_4bit_compute_dtype"}:
            continue
        yield from _meant(
            (_owner(call), name), Known(value, known.line, known.end_line, file=known.file), place, lighter
        )
    for name, share in call.shares.items():
        if "warmup" in name:
            yield from _meant(("call", "warmup_ratio"), share, place, 0)


def _by_callee(call: Call, place: LocationOf, here: Known) -> Iterator[Statement]:
    """Statements of the called function or class itself."""
    last = call.name.rpartition(".")[2]

    def says(
        field: str, value: Any, weight: int = PLAIN, at: Known = here, unit: str | None = None
    ) -> Statement:
        return statement(Meaning(field, value, weight, unit), place(at), Origin.SCRIPT, last)

    first = call.positional[0] if call.positional else None
    plain = first and isinstance(first.value, str) and not first.name and not first.argument
    text = first.value if first and plain else None
    if (trainer := TRAINER.search(call.name)) and trainer[1] in TASKS:
        yield says("task", TASKS[trainer[1]])
    if OPTIMIZER.search(call.name) and not OTHER_OPTIMIZER.search(call.name):
        yield says("optimizer", call.name, PLAIN - 1)
    elif SCHEDULE.search(call.name) and (name := schedule(last)):
        yield says("lr_schedule", name, PLAIN - 1)
    elif last == "get_scheduler" and text:
        yield says("lr_schedule", text)
    elif last in {"LoraConfig", "get_peft_model"} and ("r" in call.keywords or last == "LoraConfig"):
        yield says("tuning", "lora")
    elif (
        last in {"set_seed", "seed_everything", "enable_full_determinism"}
        and first
        and CLEAN["seed"](first.value) is not None
    ):
        yield says("seed", first.value, at=first)
    elif last == "manual_seed" and first and not first.argument and CLEAN["seed"](first.value) is not None:
        yield says("seed", first.value, VAGUE, at=first)
    elif last == "load_dataset" and text:
        yield from _dataset(call, text, first or here, says)
    elif LOADER.match(call.name) and text:
        yield says("base_model", text, PLAIN + 1, first or here)
    elif OTHER_LOADER.search(call.name) and text:
        yield says("base_model", text, VAGUE - 1, first or here)
    elif last == "select" and "load_dataset" in call.name and call.rows:
        yield says("dataset_rows", call.rows, VAGUE)
    elif last == "gradient_checkpointing_enable":
        yield says("gradient_checkpointing", True, VAGUE)
    elif last in {"FSDP", "FullyShardedDataParallel", "fully_shard"}:
        yield says("sharding", "fsdp", VAGUE)
    elif last in {"DDP", "DistributedDataParallel"}:
        yield says("sharding", "ddp", VAGUE)
    elif re.fullmatch(r"Int8WeightOnlyConfig|int8_weight_only", last):
        yield says("quantization", "int8_weight_only")
    kind, task = _task_type(call)
    if task:
        yield says("task", kind, VAGUE, task)


def _task_type(call: Call) -> tuple[str, Known | None]:
    """Return the task that a configuration of peft names, and where; None without one."""
    task = call.keywords.get("task_type")
    kind = task.value.rpartition(".")[2].lower() if task and isinstance(task.value, str) else ""
    return kind, task if kind in TASK_TYPES else None


def adapters(facts: Facts, place: LocationOf) -> Iterator[Statement]:
    """Other adapters of peft than LoRA: the tuning is named after their configuration."""
    for call in facts.calls:
        last = call.name.rpartition(".")[2]
        bare = last.removesuffix("Config")
        known = facts.from_modules.get(last, "").startswith("peft") or call.name.startswith("peft.")
        if known and bare != last and bare not in {"Lora", "Peft", "", "LoftQ", "LoraRuntime"}:
            tuning = ADAPTERS.get(bare, bare.lower())
            yield statement(
                Meaning("tuning", tuning), place(Known(None, call.line, call.line)), Origin.SCRIPT, last
            )


def _dataset(call: Call, text: str, first: Known, says: Callable[..., Statement]) -> Iterator[Statement]:
    split = call.keywords.get("split")
    if split is not None and isinstance(split.value, str) and re.match(r"(test|val|eval|dev)", split.value):
        return
    if text in FILE_FORMATS:
        return
    yield says("dataset", text, PLAIN - 1, first)
