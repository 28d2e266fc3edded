"""From a command to the files that it starts and names.

Their statements are collected.
"""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from knowledge.reading.finding import FileNames, location, meant_by, moved, place_in
from knowledge.reading.rules import configurations, scripts
from knowledge.reading.rules.commands import GivenOption, Invocation, invocation, named_files
from knowledge.reading.rules.launchers import launched, scheduled
from knowledge.reading.rules.worth import TRAINING_FIELDS, is_trainer, worth
from knowledge.reading.syntax import batch, configs, notebooks, python, shell
from knowledge.reading.syntax.expressions import Facts, Known
from knowledge.reading.syntax.makefiles import MAKEFILES, recipe
from knowledge.reading.tool_tables import StatedKey
from knowledge.reading.types import COMMAND_FILE, Location, Origin, Statement, Tree
from knowledge.reading.unsupported import StatedKeys

SHELL_KINDS = (".sh", ".slurm", ".sbatch", ".bash", *batch.KINDS)
DEEPEST = 6
MOST_PARSED = 300_000  # characters of the scripts and configurations that a training names
CONFIG_OPTIONS = frozenset({"config", "cfg", "config_name", "config-name", "config_file", "cn"})


class StatementCollector:
    """Statements of one tree, with the files that could not be read."""

    def __init__(self, tree: Tree) -> None:
        self.files: dict[str, str] = dict(tree.files)
        self._names = FileNames(self.files)
        self.first_lines: dict[str, int] = {}  # of files that a script writes: lines before them in it
        self.written_in: dict[str, str] = {}
        self.command = tree.command
        self.statements: list[Statement] = []
        self.scripts: list[Facts] = []
        self.stated = StatedKeys()
        self.unreadable: dict[str, str] = {}
        self._read: set[str] = set()
        self._left = MOST_PARSED
        self._links: dict[str, str] = {}
        self._groups: dict[str, str] = {}  # options of Hydra's groups that the command chooses

    def collect(self) -> None:
        """Read what the command leads to; without one, what the tree itself leads to."""
        if self.command:
            self._shell(shell.parse_line(batch.command_in_shell(self.command)), "", 0)
            return
        entry = self._only(SHELL_KINDS)
        if entry:
            self._shell(shell.parse(batch.in_shell(entry, self.files[entry]), entry), entry, 0)
            return
        mains = [name for name in sorted(self.files) if name.endswith((".py", ".ipynb"))]
        main = self._main(mains)
        if main:
            self._script(main, None)
        if not any(
            one.field in TRAINING_FIELDS for one in self.statements if one.origin is not Origin.DEFAULT
        ):
            for name in sorted(self.files):
                if configs.is_config(name):
                    self._config(name, Origin.NAMED_FILE)

    def _only(self, kinds: tuple[str, ...]) -> str | None:
        found = [name for name in sorted(self.files) if name.endswith(kinds)]
        return found[0] if len(found) == 1 else None

    def _main(self, names: list[str]) -> str | None:
        """The script that trains: the one that looks most like it."""

        def likeness(name: str) -> int:
            text = self.files[name]
            return (
                4 * ("Trainer(" in text)
                + 2 * ("__main__" in text)
                + ("train" in name)
                + ("add_argument" in text)
            )

        return max(names, key=likeness, default=None)

    # Shell scripts.

    def _shell(self, script: shell.Script, file: str, depth: int) -> None:
        for name, (text, before) in script.files.items():
            self.files[name] = text
            self._names.add(name)
            self.first_lines[name], self.written_in[name] = before, file
        self.statements += scheduled(script.options)
        found = [one for command in script.commands if (one := invocation(command)) is not None]
        inner = [one for one in found if self._starts(one, file)]
        best = max(inner, key=lambda one: self._worth(one, file), default=None)
        if best is not None and depth < DEEPEST:
            self._invoked(best, file, depth)

    def _worth(self, found: Invocation, file: str) -> int:
        known = self._target(found, file) is not None
        return worth(found, known=known, configured=self._is_configured(found, file))

    def _is_configured(self, found: Invocation, file: str) -> bool:
        return any(self._find(name, file) for name, _ in named_files(found))

    def _starts(self, found: Invocation, file: str) -> bool:
        """Does the command start something that may train?"""
        known = bool(found.launcher) or self._target(found, file) is not None
        return known or is_trainer(found, configured=self._is_configured(found, file))

    def _target(self, found: Invocation, near: str) -> str | None:
        if found.target is None:
            return None
        return next((name for path in meant_by(found.target.text) if (name := self._find(path, near))), None)

    def _invoked(self, found: Invocation, file: str, depth: int) -> None:
        target = self._target(found, file)
        if found.shell or (target and target.endswith((*SHELL_KINDS, *MAKEFILES))):
            for option in found.launcher_options:
                if option.name in {"c", "lc"} and isinstance(option.value, str):
                    self._quoted(option, file, depth)
            if target:
                self.statements += launched(found)
                arguments = self._arguments(found)
                text = batch.in_shell(target, self.files[target])
                text = recipe(text, found.positional) if target.endswith(MAKEFILES) else text
                inner = shell.parse(text, target, arguments, found.environment)
                self._shell(inner, target, depth + 1)
            return
        self.statements += launched(found)
        for option in found.launcher_options:
            if isinstance(option.value, str) and (name := self._find(option.value, file)):
                self._config(name, Origin.NAMED_FILE, launcher=True)
        self._script(target, found, file)

    def _quoted(self, option: GivenOption, file: str, depth: int) -> None:
        """A command that a shell is given as a text."""
        before = len(self.statements)
        self._shell(shell.parse_line(str(option.value)), file, depth + 1)
        for at in range(before, len(self.statements)):
            if self.statements[at].place.file == COMMAND_FILE:
                self.statements[at] = moved(self.statements[at], option.place)

    def _arguments(self, found: Invocation) -> list[shell.Word]:
        """The arguments of a script, in the order of the command."""
        if found.target is None:
            return []
        at = next((at for at, word in enumerate(found.words) if word is found.target), len(found.words))
        return list(found.words[at + 1 :])

    # Python scripts.

    def _script(self, target: str | None, found: Invocation | None, near: str = "") -> None:
        facts, place = (None, None) if target is None else self._facts(target)
        links: Mapping[str, str] = {}
        if facts is not None and place is not None and target is not None:
            links = self._links = scripts.linked(facts)
            self.scripts.append(facts)
            self.statements += scripts.defaults(facts, links, place)
            self.statements += scripts.stated(facts, place)
            self.statements += scripts.adapters(facts, place)
        if found is not None:
            self.stated.started.append(found)
            self.stated.keys += [
                StatedKey((one.name,), one.value) for one in found.options if one.name not in CONFIG_OPTIONS
            ]
            self._options(found, facts, links, near)
        if facts is not None and target is not None:
            self._hydra(facts, target)
            for text in sorted(facts.strings):
                if configs.is_config(text) and (name := self._find(text, target)):
                    self._config(name, Origin.IMPORTED_FILE)

    def _hydra(self, facts: Facts, target: str) -> None:
        for call in facts.calls:
            where, what = (call.keywords.get(key) for key in ("config_path", "config_name"))
            if call.name == "hydra.main" and what is not None:
                folder = str(where.value) if where is not None and where.value else "."
                name = self._find(
                    posixpath.normpath(f"{folder}/{what.value}".removesuffix(".yaml") + ".yaml"), target
                )
                if name:
                    self._config(name, Origin.NAMED_FILE)

    def _options(self, found: Invocation, facts: Facts | None, links: Mapping[str, str], near: str) -> None:
        self._groups = {one.name: one.value for one in found.options if isinstance(one.value, str)}
        for option in found.options:
            if any(name.endswith(f"{option.name}/{option.value}.yaml") for name in self.files):
                continue
            name = scripts.spelled(facts, option.name) if facts else option.name
            self.statements += scripts.option_statements(
                name, option.value, links, option.place, Origin.COMMAND, option.also
            )
        paths = [name for name, launcher in named_files(found) if not launcher]
        paths += [
            f"{option.value}.yaml"
            for option in found.options
            if option.name in CONFIG_OPTIONS and isinstance(option.value, str)
        ]
        for path in paths:
            config = self._find(path, near)
            if config and configs.is_config(config):
                self._config(config, Origin.NAMED_FILE)
            elif config and config.endswith(".py") and config not in self._read:
                self._python_config(config)

    def _python_config(self, name: str) -> None:
        """A configuration in Python: its literals count as those of a named file."""
        facts, place = self._facts(name)
        if facts is not None and place is not None:
            self.scripts.append(facts)
            for one in (*scripts.stated(facts, place), *scripts.adapters(facts, place)):
                self.statements.append(replace(one, origin=Origin.NAMED_FILE))

    def _facts(self, name: str) -> tuple[Facts, scripts.LocationOf] | tuple[None, None]:
        """Return the facts of a script or notebook, and where they stand.

        Its local modules are read as well.
        """
        self._read.add(name)
        try:
            if name.endswith(".ipynb"):
                return self._notebook(name)
            nodes = self._nodes(name, self.files[name])
            facts = python.facts_of(nodes, name, self._local_modules(name, nodes))
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            self.unreadable[name] = f"It cannot be parsed: {error}."
            return None, None
        return facts, partial(place_in, name)

    def _notebook(self, name: str) -> tuple[Facts, scripts.LocationOf]:
        notebook = notebooks.parse(self.files[name])
        facts = python.facts_of(self._nodes(name, notebook.python), name)
        if notebook.shell.strip():
            self._shell_cells(notebook, name)

        def place(known: Known) -> Location:
            last = len(notebook.lines) - 1
            first = notebook.lines[min(known.line - 1, last)]
            return location(name, first, notebook.lines[min(known.end_line - 1, last)])

        return facts, place

    def _shell_cells(self, notebook: notebooks.Notebook, name: str) -> None:
        before = len(self.statements)
        self._shell(shell.parse(notebook.shell, name), name, DEEPEST - 1)
        lines = notebook.shell_lines
        for at in range(before, len(self.statements)):
            one = self.statements[at]
            if one.place.file == name and one.origin is Origin.COMMAND and one.place.line <= len(lines):
                self.statements[at] = moved(one, Location(name, lines[one.place.line - 1]))

    def _nodes(self, name: str, text: str) -> list[ast.AST]:
        """The syntax of a script. Raises SyntaxError or ValueError."""
        self._take(len(text))
        return python.syntax(text)

    def _take(self, characters: int, error: type[ValueError] = ValueError) -> None:
        """Bound what is parsed: a character costs ten microseconds at worst.

        Raises the error where too many are named.
        """
        self._left -= characters
        if self._left < 0:
            raise error(f"The training names files of more than {MOST_PARSED:,} characters together")

    def _local_modules(self, name: str, nodes: Sequence[ast.AST]) -> dict[str, Facts]:
        found = {}
        for module in sorted(python.imports(nodes)):
            path = self._find(module.replace(".", "/") + ".py", name) if module else None
            if path and path != name and path not in self._read:
                self._read.add(path)
                try:
                    found[module] = python.facts_of(self._nodes(path, self.files[path]), path)
                except (SyntaxError, ValueError, RecursionError) as error:
                    self.unreadable[path] = f"It cannot be parsed: {error}."
        for facts in found.values():
            self.scripts.append(facts)
            self.statements += scripts.stated(facts, partial(place_in, facts.file))
        return found

    # Configuration files.

    def _config(
        self, name: str, origin: Origin, *, launcher: bool = False, depth: int = 0, package: str = ""
    ) -> None:
        if name in self._read or not configs.is_config(name) or depth > DEEPEST:
            return
        self._read.add(name)
        try:
            self._take(len(self.files[name]), configs.Unreadable)
            found = configs.entries(name, self.files[name])
        except configs.Unreadable as error:
            self.unreadable[name] = str(error)
            return
        if self.scripts:
            found = configurations.chosen_variant(found, set().union(*(one.strings for one in self.scripts)))
        for path in configurations.named_in(found):
            if other := self._find(path, name):
                self._config(other, origin, depth=depth + 1)
        for group, option in (configurations.hydra_groups(found) | self._groups).items():
            other = posixpath.normpath(posixpath.join(posixpath.dirname(name), group, f"{option}.yaml"))
            if other in self.files:
                self._config(other, origin, depth=depth + 1, package=group)
        if package:
            found = [replace(entry, path=(*package.split("/"), *entry.path)) for entry in found]
        if not launcher:
            self.stated.keys += [StatedKey(entry.path, entry.value) for entry in found]
        for one in configurations.configured(found, name, origin, self._links):
            if launcher and one.field == "gpus_per_node":
                continue
            self.statements.append(self._in_script(one))

    def _in_script(self, one: Statement) -> Statement:
        """A file that a script writes stands in that script."""
        name = one.place.file
        if name not in self.written_in:
            return one
        return moved(one, Location(self.written_in[name], one.place.line + self.first_lines[name]))

    def _find(self, path: str, near: str) -> str | None:
        return self._names.find(path, near)
