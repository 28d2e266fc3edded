"""How much a command looks like the one that trains."""

from __future__ import annotations

import re

from knowledge.reading.rules.commands import Invocation
from knowledge.reading.rules.scripts import option_statements
from knowledge.reading.types import Origin

TRAINING_FIELDS = frozenset(
    {"learning_rate", "per_device_batch_size", "epochs", "max_steps", "base_model", "lora_r"}
)
PREPARING = re.compile(r"(?i)eval|merge|convert|preprocess|prepare|download|tokenize|install|infer")
TRAINING = re.compile(r"(?i)(^|[-_./])(pre)?(train|fine?tun|sft|lora|fit)")
CERTAIN_FIELDS = 3  # an unknown program with so many options of a training trains


def worth(found: Invocation, *, known: bool, configured: bool) -> int:
    """Weigh a command.

    known: its script is in the tree. configured: it names a configuration there. Of equals the one that is
    called a training weighs more.
    """
    called = found.target is not None and bool(TRAINING.search(found.target.text))
    unlike = found.target is not None and bool(PREPARING.search(found.target.text))
    fields = len(_fields(found) & TRAINING_FIELDS)
    return 2 * (2 * fields + 2 * configured + known + bool(found.launcher_options) - 4 * unlike) + called


def is_trainer(found: Invocation, *, configured: bool) -> bool:
    """Does a program of no known launcher train?

    Its name or subcommand says so and it has a configuration or options of a training, or many of these.
    """
    words = [word.text for word in (found.target, *found.positional[:2]) if word is not None]
    if any(PREPARING.search(word) for word in words):
        return False
    named = any(TRAINING.search(word) for word in words)
    fields = len(_fields(found))
    return fields >= CERTAIN_FIELDS or (named and (configured or fields > 0))


def _fields(found: Invocation) -> set[str]:
    return {
        one.field
        for option in found.options
        for one in option_statements(option.name, option.value, {}, option.place, Origin.COMMAND)
    }
