"""The parts of one command: its launcher, its program, and the options of both."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from knowledge.reading.syntax import batch
from knowledge.reading.syntax.configs import is_config
from knowledge.reading.syntax.shell import ASSIGNMENT, UNKNOWN, Word
from knowledge.reading.types import Location

SHELLS = frozenset({"bash", "sh", "zsh", "source", ".", "sbatch", "qsub", "bsub"})
WRAPPERS = frozenset(
    {"env", "sudo", "nohup", "time", "srun", "mpirun", "mpiexec", "numactl", "poetry", "uv", "run"}
)
LAUNCHERS = frozenset(
    {"torchrun", "deepspeed", "ds", "fabric", "composer", "colossalai", "accelerate-launch"}
)
LAUNCHING_MODULES = {
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torchrun",
    "accelerate.commands.launch": "accelerate",
    "deepspeed.launcher.runner": "deepspeed",
    "paddle.distributed.launch": "paddle",
}
RUNNERS = frozenset({"tune", "litgpt", "trl", "llamafactory-cli", "axolotl", "swift", "xtuner", "autotrain"})
PYTHON = re.compile(r"python(\d(\.\d+)?)?$|ipython$|pypy3?$")
SCRIPT = re.compile(r".+\.(py|ipynb)$")
OVERRIDE = re.compile(r"\+{0,2}~?([A-Za-z_][\w./@-]*)=(.*)", re.DOTALL)
FLAGS = frozenset(
    {
        "standalone",
        "multi_gpu",
        "use_deepspeed",
        "use_fsdp",
        "no_python",
        "tee",
        "cpu",
        "same_network",
        "debug",
        "quiet",
        "cpu_bind",
    }
)


@dataclass(frozen=True, slots=True)
class GivenOption:
    """An option's name without dashes, and its value.

    It is a text, a list of texts, or True for a mere flag.
    """

    name: str
    value: Any
    place: Location
    also: tuple[Location, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """A program with its launcher.

    `target`: a script's path, a module or a recipe's name.
    """

    launcher: str
    target: Word | None
    launcher_options: tuple[GivenOption, ...] = ()
    options: tuple[GivenOption, ...] = ()
    positional: tuple[Word, ...] = ()
    environment: tuple[Word, ...] = ()
    shell: bool = False
    words: tuple[Word, ...] = field(default=(), repr=False)


def invocation(words: Sequence[Word]) -> Invocation | None:
    """The program that a command starts; None for an empty one."""
    environment, rest = _environment(list(words))
    wrapper: list[GivenOption] = []
    while rest and _name(rest[0]) in WRAPPERS:
        name, rest = _name(rest[0]), rest[1:]
        found, rest = _options_before(rest)
        wrapper += found
        if name in {"mpirun", "mpiexec"}:
            wrapper = [_renamed(option) for option in wrapper]
        more, rest = _environment(rest)
        environment += more
    if not rest:
        return None
    launcher, options, rest = _launcher(_inner(rest))
    target, rest = (rest[0], rest[1:]) if rest else (None, [])
    if target is not None and target.text == "-m" and rest:
        target, rest = rest[0], rest[1:]
    given, positional = _options(rest)
    return Invocation(
        launcher=launcher,
        target=target,
        launcher_options=(*wrapper, *options),
        options=tuple(given),
        positional=tuple(positional),
        environment=tuple(environment),
        shell=launcher in SHELLS
        or (target is not None and target.text.endswith((".sh", ".slurm", ".sbatch", *batch.KINDS))),
        words=tuple(words),
    )


def _inner(words: list[Word]) -> list[Word]:
    """Skip the words before a launcher, as in `oumi distributed torchrun`."""
    at = next((at for at, word in enumerate(words[:3]) if _name(word) in LAUNCHERS), 0)
    return words[at:] if at and not _launcher(words)[0] else words


def _renamed(option: GivenOption) -> GivenOption:
    names = {
        "n": "num_processes",
        "np": "num_processes",
        "npernode": "nproc_per_node",
        "ppn": "nproc_per_node",
    }
    return GivenOption(names.get(option.name, option.name), option.value, option.place, option.also)


def _name(word: Word) -> str:
    return PurePosixPath(word.text).name


def _environment(words: list[Word]) -> tuple[list[Word], list[Word]]:
    at = 0
    while at < len(words) and ASSIGNMENT.fullmatch(words[at].text):
        at += 1
    return words[:at], words[at:]


def _launcher(words: list[Word]) -> tuple[str, list[GivenOption], list[Word]]:
    """The launcher's name and options, and the words from its target on."""
    name = _name(words[0])
    if PYTHON.match(name):
        rest = words[1:]
        while rest and rest[0].text in {"-u", "-O", "-B", "-W"}:
            rest = rest[1:]
        if len(rest) > 1 and rest[0].text == "-m" and rest[1].text in LAUNCHING_MODULES:
            launcher = LAUNCHING_MODULES[rest[1].text]
            found, rest = _options_before(rest[2:])
            return launcher, found, rest
        return "python", [], rest
    if name == "accelerate" and len(words) > 1 and words[1].text == "launch":
        found, rest = _options_before(words[2:])
        return "accelerate", found, rest
    if name in LAUNCHERS:
        found, rest = _options_before(words[1:])
        return name, found, rest
    if name == "tune" and len(words) > 1 and words[1].text == "run":
        found, rest = _options_before(words[2:])
        return name, found, rest
    if name in RUNNERS or name in SHELLS:
        found, rest = _options_before(words[1:]) if name in SHELLS else ([], words[1:])
        return name, found, rest
    return "", [], words


def _options_before(words: list[Word]) -> tuple[list[GivenOption], list[Word]]:
    """A launcher's own options, and the words from its target on."""
    found: list[GivenOption] = []
    at = 0
    while at < len(words) and words[at].text.startswith("-") and words[at].text != "-m":
        name, equals, value = words[at].text.lstrip("-").partition("=")
        following = words[at + 1] if at + 1 < len(words) else None
        takes = (
            not equals
            and following is not None
            and not following.text.startswith("-")
            and not SCRIPT.match(following.text)
            and name.replace("-", "_") not in FLAGS
        )
        if equals:
            found.append(GivenOption(name, value, words[at].place, words[at].also))
        elif takes and following is not None:
            found.append(GivenOption(name, following.text, following.place, following.also))
            at += 1
        else:
            found.append(GivenOption(name, True, words[at].place))
        at += 1
    return found, words[at:]


def _options(words: Sequence[Word]) -> tuple[list[GivenOption], list[Word]]:
    """Return a program's options with their values.

    There are overrides as `a.b=c` as well, and what stands for itself.
    """
    found: list[GivenOption] = []
    positional: list[Word] = []
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if _is_option(word.text):
            name, equals, value = word.text.lstrip("-").partition("=")
            values = [Word(value, word.place, word.also)] if equals else []
            while not equals and at < len(words) and not _is_option(words[at].text):
                if values and OVERRIDE.fullmatch(words[at].text):
                    break
                values.append(words[at])
                at += 1
            found.append(_option(name, values, word))
        elif override := OVERRIDE.fullmatch(word.text):
            found.append(GivenOption(override[1].replace("/", "."), override[2], word.place, word.also))
        else:
            positional.append(word)
    return found, positional


def _option(name: str, values: list[Word], word: Word) -> GivenOption:
    if not values:
        off = re.match(r"no[_-](.+)", name)
        return GivenOption(off[1], False, word.place) if off else GivenOption(name, True, word.place)
    if any(not value.known for value in values):
        ends = values[-1].text.rpartition(UNKNOWN)[2].lstrip("./")
        return GivenOption(name, ends if is_config(ends) else None, word.place)
    value = values[0].text if len(values) == 1 else [one.text for one in values]
    return GivenOption(name, value, values[0].place, values[0].also)


def _is_option(text: str) -> bool:
    return text.startswith("-") and len(text) > 1 and not re.fullmatch(r"-\.?\d.*", text)


def named_files(found: Invocation) -> Iterator[tuple[str, bool]]:
    """The paths that the command names, and whether they configure the launcher."""
    for option in found.launcher_options:
        if isinstance(option.value, str):
            yield option.value, True
    for option in found.options:
        for value in option.value if isinstance(option.value, list) else [option.value]:
            if isinstance(value, str):
                yield value, False
    for word in found.positional:
        yield word.text, False
