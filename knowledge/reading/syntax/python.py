"""Facts of a Python file, read from its syntax tree alone.

They are constants, defaults of options, and calls.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from knowledge.reading.syntax.expressions import (
    CASTS,
    DEEPEST,
    Argument,
    Call,
    Expressions,
    Facts,
    Known,
    dotted,
    whole,
)

MOST_OF_ONE_NAME = 200  # assignments of a variable that are looked at; each use looks through them
MOST_BASES = 4  # of a class of a class, and so on
LIBRARY_CLASSES = ("Trainer", "Arguments", "Config")
MAIN_FUNCTIONS = frozenset(
    {
        "main",
        "train",
        "run",
        "finetune",
        "fine_tune",
        "train_model",
        "training",
        "pretrain",
        "setup",
        "run_training",
    }
)


def syntax(text: str) -> list[ast.AST]:
    """Return the nodes of a file's syntax tree. Raises SyntaxError or ValueError."""
    return list(ast.walk(ast.parse(text)))


def facts_of(nodes: Sequence[ast.AST], file: str = "", imported: dict[str, Facts] | None = None) -> Facts:
    """Return the facts of a file.

    `imported`: those of local modules, by name.
    """
    reader = _Reader(file, imported or {})
    for _ in range(2):  # defaults of options may be constants, and constants may be options
        reader.facts.constants, reader.facts.entries, reader.facts.mapped = {}, [], {}
        for node in nodes:
            reader.declared(node)
    for node in nodes:
        reader.used(node)
    return reader.facts


def imports(nodes: Iterable[ast.AST]) -> set[str]:
    """The names of the modules that a file imports."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
            found |= {name.name for name in node.names}
    return found


class _Reader:
    def __init__(self, file: str, imported: dict[str, Facts]) -> None:
        self.facts = Facts(file=file)
        self.values = Expressions(self.facts, imported)
        self.same: dict[str, str] = {}  # variables that are another one
        self.real_names: dict[str, str] = {}  # of imports under another name, and of classes
        self.targets: dict[int, str] = {}  # of calls: the variable that they are assigned to
        for module in imported.values():
            for dest, argument in module.arguments.items():
                self.facts.arguments.setdefault(dest, argument)

    # Declarations: constants, options, fields of dataclasses, defaults of main functions.

    def declared(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            self._assigned(node.targets if isinstance(node, ast.Assign) else [node.target], node.value)
        elif isinstance(node, ast.ClassDef):
            self._class(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self.facts.functions.add(node.name)
            if node.name in MAIN_FUNCTIONS:
                self._parameters(node)
            for decorator in node.decorator_list:
                if isinstance(decorator, ast.Call) and dotted(decorator.func).endswith("option"):
                    self._option(decorator)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            for name in node.names:
                self.facts.modules.add(module or name.name)
                self.facts.from_modules[name.asname or name.name] = module
                if module and name.asname and name.asname != name.name:
                    self.real_names[name.asname] = name.name
                    self.facts.from_modules.setdefault(name.name, module)
        elif isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in {
            "add_argument",
            "add_arg",
        }:
            self._option(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 300:
            self.facts.strings.add(node.value)

    def _assigned(self, targets: list[ast.expr], value: ast.expr) -> None:
        for target in targets:
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                for one, item in zip(target.elts, value.elts, strict=False):
                    self._assigned([one], item)
            name = dotted(target)
            if name and isinstance(value, ast.Name) and value.id != name:
                self.same[name] = value.id
            for node in ast.walk(value):
                if isinstance(node, ast.Call):
                    self.targets.setdefault(id(node), name)
            if name and isinstance(value, ast.Dict):
                self._mapping((name,), value, 0)
            elif name and isinstance(value, ast.Call) and dotted(value.func) == "dict":
                for keyword in value.keywords:
                    if keyword.arg and (known := self.values.known(keyword.value)) is not None:
                        self.facts.mapped.setdefault((name, keyword.arg), known)
            elif name and (known := self.values.known(value)) is not None:
                same = self.facts.constants.setdefault(name, [])
                if len(same) < MOST_OF_ONE_NAME:
                    same.append(known)

    def _mapping(self, path: tuple[str, ...], node: ast.Dict, depth: int) -> None:
        for key, value in zip(node.keys, node.values, strict=True):
            if not isinstance(key, ast.Constant) or not isinstance(key.value, str) or depth > DEEPEST:
                continue
            if isinstance(value, ast.Dict):
                self._mapping((*path, key.value), value, depth + 1)
            elif (known := self.values.known(value)) is not None:
                whole_path = (*path, key.value)
                self.facts.entries.append((whole_path, known))
                self.facts.mapped.setdefault(whole_path, known)

    def _class(self, node: ast.ClassDef) -> None:
        base = dotted(node.bases[0]) if node.bases else ""
        if base.endswith(LIBRARY_CLASSES):
            self.real_names[node.name] = base
        marked = any(
            "dataclass" in dotted(one.func if isinstance(one, ast.Call) else one)
            for one in node.decorator_list
        )
        based = any(
            dotted(base).endswith(("Arguments", "Config", "BaseModel", "Args", "Tap")) for base in node.bases
        )
        for item in node.body:
            if (
                not isinstance(item, ast.AnnAssign | ast.Assign)
                or item.value is None
                or not (marked or based)
            ):
                continue
            target = item.target if isinstance(item, ast.AnnAssign) else item.targets[0]
            name, default = dotted(target), self._field_default(item.value)
            if name and "." not in name:
                self.facts.arguments[name] = Argument((name,), default)

    def _field_default(self, value: ast.expr) -> Known | None:
        if isinstance(value, ast.Call) and dotted(value.func).rpartition(".")[2] in {"field", "Field"}:
            for keyword in value.keywords:
                if keyword.arg == "default":
                    return self.values.known(keyword.value)
                if keyword.arg == "default_factory" and isinstance(keyword.value, ast.Lambda):
                    return self.values.known(keyword.value.body)
            return self.values.known(value.args[0]) if value.args else None
        return self.values.known(value)

    def _parameters(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        given = [*node.args.posonlyargs, *node.args.args]
        pairs = [*zip(given[len(given) - len(node.args.defaults) :], node.args.defaults, strict=True)]
        pairs += [
            (arg, value)
            for arg, value in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
            if value
        ]
        for arg, value in pairs:
            self.facts.arguments.setdefault(arg.arg, Argument((arg.arg,), self._typer_default(value)))

    def _typer_default(self, value: ast.expr) -> Known | None:
        if isinstance(value, ast.Call) and value.args:
            return self.values.known(value.args[0])
        return self.values.known(value)

    def _option(self, node: ast.Call) -> None:
        flags = [
            arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)
        ]
        keywords = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
        if not flags:
            return
        names = tuple(flag.lstrip("-").replace("-", "_") for flag in flags)
        long = next((flag for flag in flags if flag.startswith("--")), flags[0])
        dest = keywords.get("dest")
        name = dest.value if isinstance(dest, ast.Constant) else long.lstrip("-").replace("-", "_")
        default = self.values.known(keywords["default"]) if "default" in keywords else None
        if isinstance(name, str):
            self.facts.arguments[name] = Argument(names, default)

    # Uses: calls with what is known of their arguments.

    def used(self, node: ast.AST) -> None:
        if not isinstance(node, ast.Call):
            return
        name = dotted(node.func)
        if not name or name.endswith(("add_argument", "add_arg")):
            return
        name = self._real(name)
        keywords, shares, names = self._spread(node), {}, {}
        for keyword in node.keywords:
            if keyword.arg is None:
                continue
            known = self.values.known(keyword.value)
            passed = dotted(whole(keyword.value))
            names[keyword.arg] = self.same.get(passed, passed)
            if known is not None:
                keywords[keyword.arg] = known
            elif (share := self._share(keyword.value)) is not None:
                shares[keyword.arg] = share
            elif isinstance(keyword.value, ast.Dict):
                self._mapping((keyword.arg,), keyword.value, 0)
        positional = tuple(self.values.known(arg) for arg in node.args)
        first = dotted(node.args[0]) if node.args else ""
        target = self.targets.get(id(node), "")
        rows = self._first_rows(node.args[0]) if node.args else 0
        self.facts.calls.append(
            Call(name, positional, keywords, node.lineno, shares, first, names, rows, target)
        )

    def _real(self, name: str) -> str:
        """The name by which a library knows what is called; a class counts as its base."""
        for _ in range(MOST_BASES):
            first = name.partition(".")[0]
            name = self.real_names.get(first, first) + name.removeprefix(first)
        return name

    def _spread(self, node: ast.Call) -> dict[str, Known]:
        """The arguments that come from mappings, `**settings`."""
        spread = {dotted(keyword.value) for keyword in node.keywords if keyword.arg is None} - {""}
        if not spread:
            return {}
        mapped = self.facts.mapped.items()
        return {path[1]: known for path, known in mapped if len(path) == 2 and path[0] in spread}

    def _first_rows(self, node: ast.expr) -> int:
        """N of `range(N)`, else 0."""
        if isinstance(node, ast.Call) and dotted(node.func) == "range" and len(node.args) == 1:
            known = self.values.known(node.args[0])
            return known.value if known is not None and type(known.value) is int else 0
        return 0

    def _share(self, node: ast.expr) -> Known | None:
        """Return the factor below 1 of a product.

        Its other factor is unknown, as in `int(0.1 * total)`.
        """
        if isinstance(node, ast.Call) and dotted(node.func) in CASTS and node.args:
            return self._share(node.args[0])
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            for side in (node.left, node.right):
                known = self.values.known(side)
                if known and isinstance(known.value, float) and 0 < known.value < 1:
                    return known
        return None
